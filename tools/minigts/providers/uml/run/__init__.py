"""Kernels of User-Mode Linux while they run: how they are started, confined, held to limits and reached."""
