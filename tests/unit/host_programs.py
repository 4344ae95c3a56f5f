"""Programs of topologies/programs, which run on hosts, loaded so that tests may call their functions."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

PROGRAMS = Path(__file__).parents[2] / "topologies" / "programs"


def program(name: str) -> Path:
    return PROGRAMS / f"{name}.py"


def loaded(name: str) -> ModuleType:
    """The program as a module; dataclasses look it up among those that are imported."""
    found = importlib.util.spec_from_file_location(name, program(name))
    assert found and found.loader
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module
