"""The models of the files of a results folder: manifest.json, raw samples, claims.json.

`VERSION` counts changes of the format: a changed field raises it, and a new one has a default.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel

from minigts import paths
from minigts.experiment_language.model import Experiment
from minigts.fidelity.host_load import HostLoad
from minigts.judge.verdicts import Word
from minigts.providers.course import Count, Digest
from minigts.topology.plan.plan import Plan

VERSION: Literal[2] = 2
MANIFEST, SAMPLES, SUMMARY, CLAIMS = "manifest.json", "samples.csv", "summary.csv", "claims.json"
REPORT = "report.html"
SERIES = "series.csv"
"""The table of figures over time; a run without such figures has none."""
FLOWS = "flows.csv"
"""The table of single flows that ran at the same time; a run without `tool: flows` has none."""
CERTIFICATE, LOG, RAW, COURSES = paths.CERTIFICATE, "run.log", "raw", "courses"
EXPERIMENT, TOPOLOGY, BESIDE = "experiment.yaml", "topology.yaml", "beside"
"""Copies of the files that a run was made from. BESIDE is the folder of further texts from
which the plan is made, such as traces; a file's name there is its path, with `/` written as %2F."""


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


class PartFacts(_Part):
    """A part that a lab was made of: the key of its recipe, and the digest of what was built
    (artifacts/checksums.py)."""

    key: Annotated[str, Field(max_length=100)]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    proven: Annotated[bool | None, Field(exclude_if=lambda proven: proven is None)] = None
    """Whether its files had the digests that minigts expects (artifacts/digests.py); None where none are expected."""

    def is_same_as(self, other: PartFacts | None) -> bool:
        """Whether both are of one recipe and have the same bytes, whatever was expected of them."""
        return other is not None and (self.key, self.sha256) == (other.key, other.sha256)


class Laid(_Part):
    """What an overlay was laid with."""

    programs: Annotated[PartFacts | None, Field(exclude_if=lambda programs: programs is None)] = None
    """Its own programs, by the key of their recipe, or of their content where the user supplied them; None where it has
    none."""
    policy: Annotated[dict[str, JsonValue], Field(exclude_if=lambda policy: not policy)] = {}
    """The policy that was in force on it, as its file says; empty without one."""


class OverlayFacts(Laid):
    """An overlay as it was measured: its endpoints by host, and the output of its verify script."""

    endpoints: dict[str, EndpointFacts] = {}
    verify: str = ""


class Guard(_Part):
    """The guard over the samples: the limit of each signal, the signals that the machine does not offer, the number of
    tainted results, and the number of attempts that were repeated because they were tainted."""

    limits: dict[str, float] = {}
    absent: tuple[str, ...] = ()
    tainted: int = 0
    repeated: int = 0


class LeftOut(_Part):
    """A part of an experiment that was left out, and why: a measurement, a claim (named by its words) or a
    measurement's counters (`watch`) that say nothing in the lab's time; or an overlay without its programs."""

    kind: Literal["measurement", "claim", "watch", "overlay"]
    name: str
    why: str


class Labs(_Part):
    """The labs of a run in virtual time that was not measured, from its first sample to its last, in one new lab of its
    own. Another run of the same experiment then has the same bytes only if its labs were the same."""

    jobs: Annotated[int, Field(ge=0)] = 0
    """The number of jobs of `--on`, each with its own lab; 0 where the run was not split."""
    runs: tuple[str, ...] = ()
    """The runs that shared the lab, this one included, in the order in which they were measured."""
    resumed: bool = False
    """Whether the run was interrupted, and continued in another lab."""
    lent: bool = False
    """Whether the lab was up before the run (`--lab`)."""


class CourseFacts(_Part):
    """The course of one lab of a run (results/courses.py): its fingerprint, how long the lab was by its own clock, and
    how many events passed the clock."""

    lab: Annotated[str, Field(max_length=100)]
    fingerprint: Digest
    seconds: Annotated[float, Field(ge=0)]
    events: Count


class Manifest(_Part):
    """The origin of a results directory.

    `commit` is minigts's own, empty outside a git tree; times are UTC in ISO 8601; `tools` and `readback` were read
    from the hosts, `emulator` and `certificate` were measured before the samples. It has no path of the machine.
    """

    version: Literal[2] = VERSION
    minigts: str
    commit: str = ""
    experiment: Experiment
    quick: Annotated[bool, Field(exclude_if=lambda quick: not quick)] = False
    """Whether the experiment is as its file's `quick:` changes it."""
    topology_sha256: str
    plan: Plan
    provider: str
    machine: Hardware
    tools: dict[str, str] = {}
    parts: dict[str, PartFacts] = {}
    """The image, kernel and clock; empty where the provider has none."""
    conditions: Annotated[dict[str, str], Field(exclude_if=lambda conditions: not conditions)] = {}
    """What the hosts had of the machine, in words; empty where the provider tells none."""
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
    """The digest of each claim (`Claim.digest`) before the run."""
    labs: Annotated[Labs | None, Field(exclude_if=lambda labs: labs is None)] = None
    courses: Annotated[tuple[CourseFacts, ...], Field(exclude_if=lambda courses: not courses)] = ()
    """The course of each lab; empty in real time."""
    samples_planned: Annotated[int, Field(ge=0)]
    started: str
    ended: str | None = None


class Side(_Part):
    """The output of another command of an attempt: a setting read back, a further session, a counter."""

    name: str
    host: str
    argv: tuple[str, ...] = ()
    code: int = 0
    stdout: str
    stderr: str = ""


class RawSample(_Part):
    """One attempt at one sample. `started` is UTC, ISO 8601; `attempt` begins at 1; `error` is None if good.

    In virtual time `started` and `seconds` are of the lab's own clock, the first in seconds since the lab began.
    `machine` is the outer machine's load meanwhile, and `tainted` why that makes the result doubtful; in virtual time
    neither is recorded.
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
    """The outputs of the attempt's other commands."""


class ClaimVerdict(_Part):
    """The verdict on one claim over one overlay; `detail` is a sentence with the figures, `why` the experiment's reason
    for a difference from what was published."""

    claim: str
    overlay: str = ""
    verdict: Word = "undecided"
    text: str = ""
    detail: str = ""
    why: str = ""
    source: str = ""
    """The document that makes the claim; empty for the experiment's own."""
    p: Annotated[float | None, Field(ge=0, le=1, exclude_if=lambda chance: chance is None)] = None
    """The p value; None where no test was made."""
    changed: Annotated[bool, Field(exclude_if=lambda changed: not changed)] = False
    """Whether the claim was changed after the run began."""
    used: Annotated[float | None, Field(exclude_if=lambda used: used is None)] = None
    """The largest share of the claim's range that a figure uses, `Range.share`; None without a range."""


class Claims(RootModel[tuple[ClaimVerdict, ...]]):
    """The content of claims.json."""
