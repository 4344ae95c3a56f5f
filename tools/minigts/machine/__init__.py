"""This machine, on which everything runs: `shell` starts processes, `proc` reads /proc, `memory` says what there is,
`sparse` copies disks.

What a lab or a provider is stands elsewhere.
"""
