"""This machine, on which everything runs: `shell` starts processes, `proc` reads /proc, `memory` says what there is,
`processors` holds a process to one of them, `sparse` copies disks.

What a lab or a provider is stands elsewhere.
"""
