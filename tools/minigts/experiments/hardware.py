"""An experiment on two computers and a cable: scripts that take its samples there, and a results folder of what they
say.

The scripts set the link's delay, rate and losses by Linux's own queueing disciplines, as a lab in real time does, so
that the cable, the cards and the computers' kernels are what differs. Nothing is sent from here to anywhere.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from minigts import paths
from minigts.dataplane import shaping
from minigts.errors import InputError, Problem
from minigts.experiment_language.model import AnyMeasurement
from minigts.experiments import derive, run_folders
from minigts.experiments.commands import underlay_mtu
from minigts.experiments.matrix import Sample
from minigts.experiments.prepare import Prepared
from minigts.experiments.sample_steps import Surroundings, procedure
from minigts.experiments.sampler import checked_sample
from minigts.language.figures import duration
from minigts.overlays import Endpoint
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.folder import read_bytes
from minigts.results.schema import RawSample
from minigts.topology.plan.elements import Host

PROVIDER = "hardware"
"""What the manifest names as the provider."""
ANSWERS = "answers"
"""The folder in which the first computer's script keeps the outputs, beside the script."""
INTERFACE = "INTERFACE"
"""Stands for the interface's name in the text of a script."""

_HEAD = """\
#!/usr/bin/env bash
# {title}: {what}
#
#   sudo ./{file} INTERFACE
#
# INTERFACE is the card at whose other end the cable leads to the other computer. It is given addresses and disciplines
# for as long as this runs, and loses them at its end.
set -euo pipefail
interface=${{1:?the interface that leads to the other computer}}
cd "$(dirname -- "$(readlink -f -- "$0")")"
undo() {{
  {killing}tc qdisc del dev "$interface" root 2>/dev/null || true
  tc qdisc del dev "$interface" clsact 2>/dev/null || true
  ip link del "ifb-$interface" 2>/dev/null || true
  ip route del {peer}/32 2>/dev/null || true
  ip address del {address}/32 dev lo 2>/dev/null || true
  ip address del {link_address} dev "$interface" 2>/dev/null || true
}}
trap undo EXIT
ip link set dev "$interface" up mtu {mtu}
ip address replace {link_address} dev "$interface"
ip address replace {address}/32 dev lo
ip route replace {peer}/32 via {via} src {address}
ip tcp_metrics flush >/dev/null
sed "s/INTERFACE/$interface/g" <<'SHAPING' | bash -eu
{shaping}SHAPING
"""
_SERVES = """\
iperf3 -s >/dev/null &
server=$!
sleep 1
kill -0 "$server" || { echo "another program has iperf3's port 5201; end it first" >&2 && exit 1; }
echo "serving; ctrl-c when the other computer has ended"
wait "$server"
"""
_ENDS_SERVER = """\
[ -z "${server:-}" ] || kill "$server" 2>/dev/null || true
  """
_TAKES = """\
take() {
  name=$1
  shift
  echo "$name"
  code=0
  timeout 600 "$@" >"answers/$name.out" 2>"answers/$name.err" || code=$?
  echo "$code" >"answers/$name.code"
  sleep 0.5
}
mkdir -p answers
"""


def scripts(prepared: Prepared) -> Mapping[str, str]:
    """The scripts by their files' names, in the order of their use: the one that serves, and the one that measures.

    Raises InputError for an experiment that two computers and a cable cannot carry out.
    """
    source, target = _ends(prepared)
    taken = [shlex.join(("take", sample.id, *_argv(prepared, sample))) for sample in prepared.samples]
    serving = _script(prepared, target, source, "the computer that answers", killing=_ENDS_SERVER)
    measuring = _script(prepared, source, target, "the computer that measures")
    return {
        f"{target.name}.sh": serving + _SERVES,
        f"{source.name}.sh": measuring + _TAKES + "\n".join(taken) + "\n",
    }


def write_scripts(prepared: Prepared, directory: Path) -> Iterator[str]:
    """Write the scripts into a directory of the user's; yields what to do with each. Raises InputError, also for a
    script that is there already."""
    made = scripts(prepared)
    taken = next((name for name in made if os.path.lexists(directory / name)), None)
    if taken is not None:
        raise InputError(
            f"{directory / taken}: is there already, and {directory / ANSWERS} is not: near.sh has yet to run"
        )
    serving, measuring = made
    try:
        paths.users_folder(directory, exist_ok=True)
        for name, text in made.items():
            paths.write_for_user(directory / name, text)
            (directory / name).chmod(0o755)
    except OSError as error:
        raise InputError(f"{directory}: cannot be written: {error}") from error
    seconds = duration(prepared.seconds)
    yield f"1. On the computer that answers:   sudo ./{serving} INTERFACE        (needs iproute2, ethtool, iperf3)"
    yield f"2. On the computer that measures:  sudo ./{measuring} INTERFACE       (likewise; takes {seconds})"
    yield f"3. Copy its folder {ANSWERS} to {directory / ANSWERS}, and give this command again."


def read_back(prepared: Prepared, answers: Path, results: Path) -> Path:
    """The results folder, with tables and verdicts, of what the measuring computer's script has kept. Raises InputError
    for outputs that are missing or broken."""
    raws = [_answer(prepared, sample, answers) for sample in prepared.samples]
    [directory] = run_folders.begin(results, [prepared], PROVIDER)
    for raw in raws:
        store.save(directory, raw)
    manifests.write(directory, manifests.read(directory).model_copy(update={"ended": manifests.now()}))
    derive.derive(directory)
    return directory


def _answer(prepared: Prepared, sample: Sample, answers: Path) -> RawSample:
    parts = {}
    for end in ("out", "err", "code"):
        path = answers / f"{sample.id}.{end}"
        if not path.is_file():
            raise InputError([Problem(str(path), 0, "is missing; the script of the computer that measures makes it")])
        parts[end] = read_bytes(path).decode(errors="replace")
    if not parts["code"].strip().isdecimal():
        raise InputError([Problem(str(answers / f"{sample.id}.code"), 1, "is no exit code")])
    raw = RawSample(
        sample=sample.id,
        host=sample.source,
        argv=_argv(prepared, sample),
        code=int(parts["code"]),
        stdout=parts["out"],
        stderr=parts["err"],
        started="",
        seconds=0.0,
        attempt=1,
    )
    return checked_sample(_measurement(prepared, sample), raw)


def _ends(prepared: Prepared) -> tuple[Host, Host]:
    plan, experiment = prepared.plan, prepared.experiment
    if len(plan.hosts) != 2 or len(plan.links) != 1:
        why = f"two computers and a cable are two hosts and one link; {plan.name} has others"
        raise InputError(f"{experiment.name}: {why}")
    if plan.family != "ipv4":
        raise InputError(f"{experiment.name}: two computers get IPv4 addresses, and {plan.name} has none")
    pairs = {(sample.source, sample.target) for sample in prepared.samples}
    if len(pairs) != 1 or experiment.overlays != ("none",):
        raise InputError(f"{experiment.name}: on hardware all samples go from one host to the other, over no overlay")
    [(source, target)] = pairs
    return plan.host(source), plan.host(target)


def _measurement(prepared: Prepared, sample: Sample) -> AnyMeasurement:
    return prepared.experiment.measurement(sample.measurement).under(sample.condition)


def _argv(prepared: Prepared, sample: Sample) -> tuple[str, ...]:
    measurement, plan = _measurement(prepared, sample), prepared.plan
    endpoints = {host.name: Endpoint(host.name, host.address, underlay_mtu(plan), ()) for host in plan.hosts}
    found = procedure(measurement, sample, Surroundings(plan, endpoints, _no_second, None))
    if found.before or found.beside or found.after:
        raise InputError(f"{measurement.name}: on hardware a measurement is one command on one host")
    return found.client.argv


def _no_second(host: str) -> Endpoint:
    raise InputError(f"{host}: there are no second ends on hardware")


def _script(prepared: Prepared, host: Host, other: Host, what: str, killing: str = "") -> str:
    [port], [peer] = host.ports, other.ports
    link_address = f"{port.address}/{port.prefix}"
    return _HEAD.format(
        title=prepared.experiment.title,
        what=what,
        file=f"{host.name}.sh",
        killing=killing,
        peer=other.address,
        via=peer.address,
        address=host.address,
        link_address=link_address,
        mtu=port.mtu,
        shaping=shaping.script([port.model_copy(update={"name": INTERFACE})]),
    )
