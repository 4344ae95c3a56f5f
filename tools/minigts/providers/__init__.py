"""Providers bring a plan up as a lab. `base` is their contract and `registry` lists them. Each has a folder with its
class, its needs on this machine, what `doctor` says about it, and its system packages. They share `agent`.
"""

DEFAULT = "uml"
"""The provider that is used when no other is named."""
