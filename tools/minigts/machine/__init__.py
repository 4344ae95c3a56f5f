"""The machine on which everything runs: `shell` starts processes, `proc` reads /proc, `memory` finds free memory,
`processors` pins a process to one processor, `sparse` copies disks.

Nothing here knows labs or providers.
"""
