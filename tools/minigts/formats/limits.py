"""How much of what a file says beside its network is taken over, and which files are GTS's. A module of its own, for
every plan is held to it.
"""

GTS_SUFFIXES = (".dsl", ".gts")
MOST_NOTES = 100
LONGEST_NOTE = 300
LONGEST_DESCRIPTION = 4000
