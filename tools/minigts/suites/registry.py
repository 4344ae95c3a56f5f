"""The suites by their names."""

from __future__ import annotations

from collections.abc import Mapping

from minigts.errors import InputError
from minigts.language.problems import did_you_mean
from minigts.suites.frr import Frr
from minigts.suites.hwsim import Hwsim
from minigts.suites.iproute2 import Iproute2
from minigts.suites.kselftest import Kselftest
from minigts.suites.packetdrill import Packetdrill
from minigts.suites.suite import Suite
from minigts.suites.tc_testing import TcTesting

SUITES: Mapping[str, Suite] = {
    suite.name: suite for suite in (Packetdrill(), Kselftest(), TcTesting(), Iproute2(), Frr(), Hwsim())
}


def find(name: str) -> Suite:
    """The suite of that name. Raises InputError, which lists them."""
    if name not in SUITES:
        raise InputError(f"no suite {name!r}; there are {', '.join(SUITES)}{did_you_mean(name, SUITES)}")
    return SUITES[name]
