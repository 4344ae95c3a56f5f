"""The GÉANT Testbed Service on one machine. CONTRIBUTING.md has a map of its packages."""

__version__ = "1.0.0"
