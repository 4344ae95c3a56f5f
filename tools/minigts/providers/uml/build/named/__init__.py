"""Kernels by name: their sources, minigts' patches in them, and their build.

Not here: what is known of one that is built (`artifacts/kernels.py`), and the standard kernel (`kernel_build.py`).
"""
