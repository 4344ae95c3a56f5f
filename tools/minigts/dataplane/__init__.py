"""What is set on a machine so that it is as planned, and read back from it: interfaces, routers, shaping, switches; and
what the wire between two machines is set to where the links are not theirs to shape.

Pure: a plan's machine becomes a script, and what tc then shows becomes differences. Who runs the script is elsewhere.
"""
