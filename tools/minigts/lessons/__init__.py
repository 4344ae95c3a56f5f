"""Lessons: predict, then measure. A lesson's questions and measurements are data in docs/lessons. This room reads them,
writes a student's folder, measures a lab and judges answers; it also reads and grades the folders that are handed in.
Labs are brought up and certified elsewhere.
"""
