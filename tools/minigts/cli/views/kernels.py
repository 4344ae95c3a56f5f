"""The kernels that are built, as `minigts kernel` shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from minigts.cli import console
from minigts.cli.views.tables import show_table
from minigts.topology.kernel_names import STANDARD

if TYPE_CHECKING:
    from minigts.artifacts.kernels import NamedKernel, SourceFacts

Facts = Mapping[str, object]


def standard_facts() -> Facts:
    """What is known of the full kernel, which hosts have whose file names none."""
    from minigts.artifacts import digests, kernels
    from minigts.providers.uml.build import kernel_build

    found = kernel_build.present()
    if found is None:
        return {"name": STANDARD, "state": "not built: minigts kernel build", "version": ""}
    proof = digests.proof(found.directory)
    return {
        "name": STANDARD,
        "version": found.version,
        "source": "Debian",
        "hz": kernels.standard_ticks(),
        "config": {},
        "state": str(proof),
        "directory": str(found.directory),
    }


def facts(kernel: NamedKernel) -> Facts:
    """What is known of a kernel by name."""
    about = kernel.manifest
    return {
        **about.model_dump(exclude={"format", "asked", "source", "directory"}),
        "source": _in_words(about.source),
        "state": kernel.state,
        "directory": str(kernel.directory),
    }


def _in_words(source: SourceFacts) -> str:
    """`Debian`, or `/home/me/linux at 1f2e3d4c5b6a, changed`"""
    if source.kind == "debian":
        return "Debian"
    at = f" at {source.commit[:12]}" if source.commit else ""
    return f"{source.place}{at}{', changed' if source.changed else ''}"


def show(several: Sequence[Facts]) -> None:
    rows = [
        (
            str(each["name"]),
            str(each["version"]),
            str(each.get("hz", "")),
            str(each.get("source", "")),
            _options(each),
            str(each["state"]),
        )
        for each in several
    ]
    show_table("kernels", ("name", "version", ">HZ", "source", "options", "state"), rows, optional=("source",))


def _options(each: Facts) -> str:
    found = each.get("config")
    return " ".join(f"{key}={value}" for key, value in found.items() if key != "HZ") if isinstance(found, dict) else ""


def tell(kernel: NamedKernel) -> None:
    """Say what came of a build."""
    about = kernel.manifest
    took = f"in {about.seconds:.0f} s"
    console.note(f"kernel {about.name} is built from Linux {about.version} {took}; it is {kernel.proof}")
    if about.merged:
        console.note(f"merged, since these sources have moved: {', '.join(about.merged)}")
    if about.lacks:
        console.note(f"these sources lack {len(about.lacks)} of minigts' options: {', '.join(about.lacks)}")
