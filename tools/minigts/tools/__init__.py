"""Measuring tools: what a program that measures prints, read into figures.

Which of them is run, how often and over which paths is an experiment's business.
"""
