"""minigts from Python: labs, their hosts, containers and links, what is measured between them, and experiments.

    from minigts import api

    with api.up("topologies/pair.yaml") as lab:
        print(lab.host("ams").run("uname", "-r").stdout)
        print(lab.rtt("ams", "bra"))

What stands here is what other people's programs may rely on; all other rooms may change from day to day.
docs/python.md shows it whole. Errors are `minigts.errors.MinigtsError`s: `InputError` for what was asked wrongly,
`EnvironmentLacks` for what this machine has not, `CommandFailed` with all that a command said.
"""

from minigts.api.experiments import Results, open_results, run_experiment
from minigts.api.labs import Container, Host, Lab, Link, OwnContainer, all_labs, open_lab, up
from minigts.api.measured import RoundTrips, Throughput
from minigts.session.plans import planned

VERSION = (1, 2)
"""Of this interface. The first number grows when something goes or means something else, the second when something
comes."""

__all__ = [
    "VERSION",
    "Container",
    "Host",
    "Lab",
    "Link",
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
