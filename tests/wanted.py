"""What the command line asks for."""

from __future__ import annotations

from pathlib import Path

import pytest


def wanted(config: pytest.Config) -> list[Path]:
    """The files and folders that the command line names."""
    return [(config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args]
