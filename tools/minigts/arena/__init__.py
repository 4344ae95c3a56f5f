"""`minigts arena`: incidents in labs, to be found and mended by agents and by students, and how well they did.

An incident is a lab of a board with faults of `break`, or of the further kinds that are here, or with none. What users
rely on is measured before and after; who plays has the tools of `minigts mcp`.
"""
