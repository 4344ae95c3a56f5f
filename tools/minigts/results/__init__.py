"""A results folder: the models of its files (schema), how they are stored and read (store, manifest), its tables.

Writers and readers use the same classes. Nothing here measures, judges or draws.
"""
