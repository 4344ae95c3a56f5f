"""Which providers this machine can run, and what stops or slows them, in the registry's order."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from minigts.providers import DEFAULT, registry
from minigts.providers.base import DoctorFinding

Verdict = Literal["runs", "runs slowly", "cannot run"]


@dataclass(frozen=True)
class Diagnosis:
    """A provider, what its hosts are, and the findings for it."""

    provider: str
    about: str
    findings: tuple[DoctorFinding, ...]

    @property
    def verdict(self) -> Verdict:
        states = {finding.state for finding in self.findings}
        if "missing" in states:
            return "cannot run"
        return "runs slowly" if "slow" in states else "runs"

    @property
    def can_run(self) -> bool:
        return self.verdict != "cannot run"


def examine(names: Iterable[str]) -> tuple[Diagnosis, ...]:
    """A diagnosis of this machine for each of these providers. Raises InputError for a name that is not registered."""
    providers = [registry.make(name, Path()) for name in names]
    return tuple(Diagnosis(each.name, each.about, tuple(each.findings())) for each in providers)


def default_can_run(diagnoses: Collection[Diagnosis]) -> bool:
    """Whether the default provider can run here."""
    return any(diagnosis.can_run for diagnosis in diagnoses if diagnosis.provider == DEFAULT)
