"""Does one thing to one lab again and again, beside others that do the same: `racing_lab.py VERB TIMES SEED`."""

from __future__ import annotations

import itertools
import random
import sys
import time

import tc_hosts

from minigts import lab as labs
from minigts import paths
from minigts.errors import MinigtsError
from minigts.providers import registry
from minigts.topology.read.load import parse

PLAN = parse("name: two\npair: {hosts: [ams, bra], link: {rtt: 10ms, rate: 50mbit}}\n", "two.yaml")


def quiet(_said: str) -> None:
    pass


def enter() -> None:
    """The lock alone: nobody else is inside."""
    rundir = paths.labs_root() / "two"
    with labs.exclusive(rundir):
        inside = rundir.parent / "inside"
        inside.touch(exist_ok=False)
        inside.unlink()


def up() -> None:
    labs.up(PLAN, tc_hosts.TcHosts.name, None, quiet)


def down() -> None:
    labs.down(labs.open_lab("two"))


def execute() -> None:
    labs.open_lab("two").provider.run("ams", ["true"], timeout_s=5)


def status() -> None:
    for lab in labs.all_labs():
        assert set(lab.state_of_hosts()) == {"ams", "bra"}, lab.read_record()


def cut() -> None:
    labs.set_links_up(labs.open_lab("two"), "ams", "bra", up=random.random() < 0.5)


VERBS = {"enter": enter, "up": up, "down": down, "exec": execute, "status": status, "link": cut}
LASTING = {"up"}
"""Goes on until it has come to its end once, which others hinder as long as they run."""


def main(verb: str, times: int, seed: int) -> None:
    """Whatever minigts explains is an answer; another error ends this with its traceback."""
    registry._PROVIDERS[tc_hosts.TcHosts.name] = tc_hosts.TcHosts  # type: ignore[index]
    chance, done = random.Random(seed), 0
    for tried in itertools.count(1):
        try:
            VERBS[verb]()
            done += 1
        except MinigtsError as error:
            assert "\n" not in str(error), error
        if tried >= times and (done or verb not in LASTING):
            break
        time.sleep(chance.random() * 0.002)
    sys.stdout.write(str(done))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
