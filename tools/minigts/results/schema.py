"""What the files of a results folder hold: manifest.json, raw samples, claims.json. Written and read through these.

`VERSION` counts changes of the shape; a folder that says none is of the first. Old folders stay readable: whoever adds
a field gives it a default, and whoever changes one raises the version and reads the earlier shape as well. In the first
the plan had routes and paths (topology/stored.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, RootModel

from minigts import paths
from minigts.experiments.model import Experiment
from minigts.fidelity.host_load import HostLoad
from minigts.judge.verdicts import Word, current
from minigts.topology.plan import Plan

FIRST, VERSION = 1, 2
MANIFEST, SAMPLES, SUMMARY, CLAIMS = "manifest.json", "samples.csv", "summary.csv", "claims.json"
REPORT = "report.html"
SERIES = "series.csv"
"""What was watched over time; there is none where nothing was."""
CERTIFICATE, LOG, RAW = paths.CERTIFICATE, "run.log", "raw"
EXPERIMENT, TOPOLOGY, BESIDE = "experiment.yaml", "topology.yaml", "beside"
"""The files that a run was made from, as they were; folders of before have none. BESIDE is the folder of the texts that
the topology's plan is made of as well, such as traces; a file's name there is its path, `/` written as %2F."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True, allow_inf_nan=False)


class Hardware(_Part):
    """The computer that carried the lab."""

    cpu: str
    cores: int
    memory_mb: int
    kernel: str


class Noise(_Part):
    """How busy the machine was. `steal_s` is processor time taken by other guests since boot, over all cores."""

    load_1min: float
    steal_s: float


class EndpointFacts(_Part):
    address: str
    mtu: Annotated[int, Field(ge=68, le=65535)]


class OverlayFacts(_Part):
    """An overlay as it was measured: its endpoints by host, and what its verify script said."""

    endpoints: dict[str, EndpointFacts] = {}
    verify: str = ""


class Guard(_Part):
    """What watched over the samples: the limit of each signal, the signals that this machine does not have, how many
    results are tainted, and how many attempts were thrown away because they were."""

    limits: dict[str, float] = {}
    absent: tuple[str, ...] = ()
    tainted: int = 0
    repeated: int = 0


class PartFacts(_Part):
    """What the lab's hosts were started from: the key of the recipe that it was built by, and a sum of what was built
    (artifacts/content.py)."""

    key: Annotated[str, Field(max_length=100)]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class LeftOut(_Part):
    """A part of an experiment that was not done, and why. Since it says nothing in the lab's time: a measurement by its
    name, a claim by its words, or the counters that a measurement watches. Since the user has not brought its programs:
    an overlay."""

    kind: Literal["measurement", "claim", "watch", "overlay"]
    name: str
    why: str


class Manifest(_Part):
    """Where a results directory comes from.

    `commit` is minigts's own, empty outside a git tree; times are UTC in ISO 8601; `tools` and `readback` are what the
    caller asked the hosts for, `emulator` and `certificate` what it measured of the lab beforehand. No path of the
    machine is in it.
    """

    version: Annotated[int, Field(ge=1, le=VERSION)] = VERSION
    minigts: str
    commit: str = ""
    experiment: Experiment
    topology_sha256: str
    plan: Plan
    provider: str
    machine: Hardware
    tools: dict[str, str] = {}
    parts: dict[str, PartFacts] = {}
    """image, kernel, clock; empty where the provider has none such, and in folders of before."""
    packages: dict[str, str] = {}
    """Every Debian package of the image with its version."""
    emulator: dict[str, str] = {}
    certificate: dict[str, JsonValue] = {}
    readback: dict[str, JsonValue] = {}
    overlays: dict[str, OverlayFacts] = {}
    skipped: dict[str, str] = {}
    """Overlays that could not be joined, and why."""
    left_out: tuple[LeftOut, ...] = ()
    noise_before: Noise | None = None
    noise_after: Noise | None = None
    guard: Guard | None = None
    claims_sha256: Annotated[
        tuple[Annotated[str, Field(pattern="^[0-9a-f]{64}$")], ...], Field(exclude_if=lambda sums: not sums)
    ] = ()
    """Of each claim a sum of what is judged, as it was before the run; none in folders of before."""
    samples_planned: Annotated[int, Field(ge=0)]
    started: str
    ended: str | None = None


class Side(_Part):
    """What another command said that belongs to an attempt: a setting read back, one more session, a counter."""

    name: str
    host: str
    argv: tuple[str, ...] = ()
    code: int = 0
    stdout: str
    stderr: str = ""


class RawSample(_Part):
    """One attempt at one sample. `started` is UTC, ISO 8601; `attempt` begins at 1; `error` is None if good.

    In virtual time `started` and `seconds` are of the lab's own clock, the first in seconds since the lab began.
    `machine` is what the outer machine did meanwhile, `tainted` why that makes the result doubtful; nobody looks in
    virtual time.
    """

    sample: str
    host: str
    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str
    started: str
    seconds: float
    attempt: int
    error: str | None = None
    machine: HostLoad | None = None
    tainted: tuple[str, ...] = ()
    around: tuple[Side, ...] = ()
    """What other commands said that belong to it."""


class Claim(_Part):
    """What became of one claim over one overlay; `detail` is a sentence with the numbers, `why` what the experiment
    says of the distance to what was published."""

    claim: str
    overlay: str = ""
    verdict: Annotated[Word, BeforeValidator(current)] = "undecided"
    text: str = ""
    detail: str = ""
    why: str = ""
    source: str | None = None
    """Whose claim it is; empty for the experiment's own, None where the folder is older than that."""
    p: Annotated[float | None, Field(ge=0, le=1, exclude_if=lambda chance: chance is None)] = None
    """The chance of what was measured were the contrary true; None where no test was made."""
    changed: Annotated[bool, Field(exclude_if=lambda changed: not changed)] = False
    """Whether it is another one than before the run."""


class Claims(RootModel[tuple[Claim, ...]]):
    """claims.json."""
