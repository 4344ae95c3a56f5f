"""Segments, addresses, costs and paths of a lab."""
