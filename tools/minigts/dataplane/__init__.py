"""The settings of a planned machine, set and read back: interfaces, routers, shaping, switches; and those of the wires
between machines, where wires and not machines shape the links.

Pure: a plan's machine becomes a script, and the output of tc becomes differences. Scripts are run elsewhere.
"""
