"""Limits of notes and descriptions that are imported. They have their own module, since every plan is held to them."""

MOST_NOTES = 100
LONGEST_NOTE = 300
LONGEST_DESCRIPTION = 4000
