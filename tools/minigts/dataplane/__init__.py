"""What is set on a machine so that it is as planned, and read back from it: interfaces, shaping, switches.

Pure: a plan's machine becomes a script, and what tc then shows becomes differences. Who runs the script is elsewhere.
"""
