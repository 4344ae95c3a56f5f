"""A release: minigts and its built parts as files for other machines, with sums, origin and a list of all materials."""
