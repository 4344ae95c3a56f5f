"""The GÉANT Testbed Service on one machine. CONTRIBUTING.md says how its parts lie."""

__version__ = "0.1.0"
