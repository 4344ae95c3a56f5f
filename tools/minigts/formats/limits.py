"""How much of what a file says beside its network is taken over. A module of its own, for every plan is held to it."""

MOST_NOTES = 100
LONGEST_NOTE = 300
LONGEST_DESCRIPTION = 4000
