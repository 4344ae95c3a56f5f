"""minigts from Python: labs, their hosts, containers and links, what is measured between them, and experiments.

    from minigts import api

    with api.up("topologies/pair.yaml") as lab:
        print(lab.host("ams").run("uname", "-r").stdout)
        print(lab.rtt("ams", "bra"))

Users' programs may rely on the names in this module; all other modules may change at any time. docs/python.md is the
guide. Errors are `minigts.errors.MinigtsError`s: `InputError` for wrong arguments, `EnvironmentLacks` for what this
machine lacks, `CommandFailed` with the output of a command.
"""

from minigts.api.arena import Arena, Observation
from minigts.api.experiments import Results, open_results, run_experiment
from minigts.api.labs import Container, Host, Lab, Link, OwnContainer, all_labs, open_lab, up
from minigts.api.measured import RoundTrips, Throughput
from minigts.session.plans import planned

VERSION = (1, 5)
"""The version of this interface. The first number grows when something is removed or changes its meaning, the second
when something is added."""

__all__ = [
    "VERSION",
    "Arena",
    "Container",
    "Host",
    "Lab",
    "Link",
    "Observation",
    "OwnContainer",
    "Results",
    "RoundTrips",
    "Throughput",
    "all_labs",
    "open_lab",
    "open_results",
    "planned",
    "run_experiment",
    "up",
]
