"""Limits of what is imported. They have their own module, since every plan is held to them."""

MOST_NOTES = 100
LONGEST_NOTE = 300
LONGEST_DESCRIPTION = 4000
MOST_HOSTS = 5000
"""The most hosts and switches of a lab."""
