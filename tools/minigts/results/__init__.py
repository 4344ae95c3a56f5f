"""A results folder: what its files hold (schema), how they are kept and read back (store, manifest), its tables.

One set of classes for whoever writes and whoever reads. Nothing here measures, judges or draws.
"""
