"""Lessons: predict, then measure. What a lesson asks and measures is data in docs/lessons; here is what reads it,
writes a student's folder, measures a lab, and judges; and what reads and grades the folders that are handed in. How a
lab comes up and is measured by its plan is not here.
"""
