"""Kathará's labs: `lab.conf`, with the files of each device beside it. They are read.

    LAB_DESCRIPTION="Two hosts and a router"
    pc1[0]="A"                     # the device's interface 0 is on the collision domain A
    r1[0]="A/00:00:00:00:00:01"    # with that MAC address
    r1[1]="B"
    r1[sysctl]="net.ipv4.conf.all.rp_filter=0"

Beside it lie `pc1.startup`, a shell script that pc1 runs, and a directory `pc1` whose files are pc1's. A collision
domain of two devices is a link, another one a switch. Interfaces are eth0, eth1, … here, too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import PurePosixPath

from minigts.formats.attached import Attached, WantedLink, fit_links
from minigts.formats.beside import FileDirectory, names_interface
from minigts.formats.containerlab_commands import IPV6_ON
from minigts.formats.keys import KATHARA
from minigts.formats.lines import FileLines
from minigts.formats.network import Names, Network, NetworkLink, NetworkMachine, memory_of_host, title
from minigts.language.blocks import MAC, OWN_MACS
from minigts.language.host_paths import checked_source, checked_target
from minigts.language.interface_names import port_name
from minigts.language.problems import did_you_mean, quote
from minigts.language.quantities import MEMORY_MB

FILE = "lab.conf"
LONGEST_COMMAND = 4000
"""The longest command of a host in a topology."""
SHARED = "shared"
"""Whose startup all devices run, before their own."""
MOST_FILES = 100
"""The most files of a host in a topology."""
_OPTION = re.compile(r"([A-Za-z0-9_.-]{1,60})\[([A-Za-z0-9_]{1,30})\]\s*=\s*(.*)", re.ASCII)
_ABOUT = re.compile(r"(LAB_[A-Z]{1,30})\s*=\s*(.*)", re.ASCII)
_DOMAIN = re.compile(r"([A-Za-z0-9_-]{1,60})(?:/([0-9A-Fa-f:]{17}))?", re.ASCII)
_SYSCTL = re.compile(r"([a-z][a-z0-9_]*(?:[./][A-Za-z0-9_-]+){1,9})\s*=\s*(\S{1,200})", re.ASCII)
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,63})=([^\n]{0,1000})", re.ASCII)
_MEMORY = re.compile(r"([0-9]{1,9})\s*([bkmg]?)", re.IGNORECASE | re.ASCII)
_MB_OF = {"": Fraction(1), "b": Fraction(1, 2**20), "k": Fraction(1, 2**10), "m": Fraction(1), "g": Fraction(2**10)}
"""By the unit of a size of memory, in 2^20 bytes. Without a unit Kathará takes it for `m`."""
_NUMBER = re.compile(r"[0-9]{1,3}", re.ASCII)
_INTERFACE = re.compile(r"(?<![A-Za-z0-9_-])eth([0-9]{1,3})(?![A-Za-z0-9_-])", re.ASCII)
_STARTS_A_DAEMON = re.compile(r"(?:systemctl|service)\s|/etc/init\.d/|/usr/lib/frr/", re.ASCII)
_SEVERAL_LINES = re.compile(
    r"\\$|<<|^\s*(?:while|until|for|if|case|do|then|else|elif|fi|done|esac)\b|[{}]\s*$|\(\)", re.ASCII | re.MULTILINE
)
"""Signs of a script whose lines are no commands by themselves."""
_YES, _NO = ("true", "yes", "y", "1"), ("false", "no", "n", "0")


@dataclass
class _Device:
    """What lab.conf says of a device; `domains` by the interface's number: the domain, its MAC address, the line."""

    name: str
    line: int
    domains: dict[int, tuple[str, str | None, int]] = field(default_factory=dict)
    sysctls: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    """What `exec` says, which comes last."""
    environment: dict[str, str] = field(default_factory=dict)
    memory_mb: int | None = None
    cpus: float | None = None
    has_ipv6: bool = False


def read(text: str, file: str, beside: FileDirectory, *, leave_out: bool = False) -> Network:
    """The network of a lab.conf. Raises InputError with every problem, each with its line."""
    reading = _Reading(FileLines(file, leave_out=leave_out), beside)
    for number, line in enumerate(text.splitlines(), 1):
        reading.line(line.strip(), number)
    reading.devices_that_have_files_alone()
    return reading.network()


class _Reading:
    def __init__(self, lines: FileLines, beside: FileDirectory) -> None:
        self._lines, self._beside = lines, beside
        self._devices: dict[str, _Device] = {}
        self._description = ""

    def line(self, line: str, number: int) -> None:
        """Take in a line of the file."""
        if not line or line.startswith("#"):
            return
        if (about := _ABOUT.fullmatch(line)) is not None:
            if about[1] == "LAB_DESCRIPTION":
                self._description = _unquoted(about[2])
            return
        found = _OPTION.fullmatch(line)
        if found is None:
            self._lines.wrong(number, f'{quote(line)} is no line of lab.conf, as in pc1[0]="A"')
            return
        device = self._devices.setdefault(found[1], _Device(found[1], number))
        if _NUMBER.fullmatch(found[2]):
            self._interface(device, int(found[2]), _unquoted(found[3]), number)
        else:
            self._option(device, found[2], _unquoted(found[3]), number)

    def _interface(self, device: _Device, index: int, value: str, number: int) -> None:
        found = _DOMAIN.fullmatch(value)
        if found is None:
            self._lines.wrong(number, f"{quote(value)} is no collision domain, as in A or A/00:00:00:00:00:01")
        elif index in device.domains:
            self._lines.wrong(number, f"interface {index} of {quote(device.name)} is on a domain already")
        else:
            device.domains[index] = found[1], self._mac(device, found[2], number), number

    def _mac(self, device: _Device, written: str | None, number: int) -> str | None:
        if written is None:
            return None
        mac = written.lower()
        if not MAC.fullmatch(mac):
            self._lines.wrong(number, f"{quote(written)} is not a MAC address of one machine")
        elif mac.startswith(OWN_MACS):
            self._lines.lose(number, "mac", device.name, f"{OWN_MACS} begins the addresses that minigts gives")
        else:
            return mac
        return None

    def _option(self, device: _Device, key: str, value: str, number: int) -> None:
        known = KATHARA["device"].get(key)
        if known is None:
            why = f"it is not known{did_you_mean(key, KATHARA['device'])}"
            self._lines.lose(number, f"the option {quote(key)}", device.name, why)
        elif known.fate == "note":
            self._lines.notes.add(key, device.name, f"left out: {known.why}")
        elif known.fate == "error":
            if key != "bridged" or value.lower() in _YES:
                self._lines.lose(number, key, device.name, known.why)
        else:
            self._honour(device, key, value, number)

    def _honour(self, device: _Device, key: str, value: str, number: int) -> None:
        wrong = f"{quote(value)} is no value of {key}"
        match key:
            case "sysctl" if (found := _SYSCTL.fullmatch(value)) is not None:
                device.sysctls.append(shlex.join(["sysctl", "-qw", f"{found[1]}={found[2]}"]))
            case "env" if (found := _VARIABLE.fullmatch(value)) is not None:
                device.environment[found[1]] = found[2]
            case "mem" if (found := _MEMORY.fullmatch(value)) is not None:
                device.memory_mb = self._memory(device, int(found[1]) * _MB_OF[found[2].lower()], number)
            case "cpus" if _is_share(value):
                device.cpus = float(value)
            case "exec" if value:
                device.commands += self._commands(device, [value], "exec", number)
            case "ipv6" if value.lower() in (*_YES, *_NO):
                device.has_ipv6 = value.lower() in _YES
            case _:
                self._lines.wrong(number, wrong)

    def _memory(self, device: _Device, size_mb: Fraction, number: int) -> int | None:
        of_host = memory_of_host(float(size_mb), "mem", device.name, self._lines.notes)
        try:
            return round(MEMORY_MB.parse(f"{round(of_host)}MB"))
        except ValueError as error:
            self._lines.wrong(number, str(error))
            return None

    def devices_that_have_files_alone(self) -> None:
        """What else lies beside the file and belongs to the lab."""
        for name in self._beside.names():
            if name == "lab.ext":
                self._lines.lose(0, name, "the lab", "it joins a domain to a network of the machine")
            elif name.endswith(".shutdown"):
                self._lines.notes.add(name, "the lab", "left out: nothing runs as a host ends")
            elif name == "lab.dep":
                self._lines.notes.add(name, "the lab", "left out: all hosts start together")
            elif name.endswith(".startup") and name.removesuffix(".startup") not in (*self._devices, SHARED):
                self._lines.notes.add(name, "the lab", "left out: lab.conf has no such device")

    def network(self) -> Network:
        lines = self._lines
        if not self._devices and not lines.problems:
            lines.wrong(0, 'no device in it: lab.conf has lines such as pc1[0]="A"')
        names = Names(lines.notes)
        machines = {
            device.name: NetworkMachine(
                names.unique_name(device.name),
                device.line,
                cpus=device.cpus,
                memory_mb=device.memory_mb,
                environment=tuple(device.environment.items()),
            )
            for device in self._devices.values()
        }
        attached, switches = self._attached(machines, names)
        found = fit_links({each.name: each for each in (*machines.values(), *switches)}, attached)
        lines.settle(found)
        made = [
            replace(
                machine,
                run=tuple(self._run(self._devices[name], found.renamed.get(machine.name, {}))),
                files=tuple(self._files(self._devices[name], found.renamed.get(machine.name, {}))),
            )
            for name, machine in machines.items()
        ]
        name = title(self._beside.name, "kathara")
        return lines.network(name, (*made, *switches), found.links, self._description)

    def _attached(
        self, machines: Mapping[str, NetworkMachine], names: Names
    ) -> tuple[list[Attached], list[NetworkMachine]]:
        """The links, and a switch for each domain that is no link."""
        domains: dict[str, list[tuple[str, int, str | None, int]]] = {}
        for device in self._devices.values():
            if not device.domains:
                self._lines.notes.add("no interface", device.name, "it is on no collision domain")
            for index, (domain, mac, number) in sorted(device.domains.items()):
                domains.setdefault(domain, []).append((device.name, index, mac, number))
        links, switches = list[Attached](), list[NetworkMachine]()
        for domain, ends in domains.items():
            two = len(ends) == 2 and ends[0][0] != ends[1][0]
            if not two:
                switch = NetworkMachine(names.unique_name(f"domain-{domain}"), ends[0][3], is_switch=True)
                switches.append(switch)
            pairs = [(ends[0], ends[1])] if two else [(end, None) for end in ends]
            for first, second in pairs:
                other = machines[second[0]].name if second is not None else switch.name
                given = [end for end in (first, second) if end is not None]
                macs = tuple((machines[end[0]].name, end[2]) for end in given if end[2] is not None)
                wanted = [_wanted(end) for end in given]
                link = NetworkLink((machines[first[0]].name, other), first[3], macs=macs)
                links.append(Attached(link, (wanted[0], wanted[1] if len(wanted) > 1 else WantedLink(()))))
        return links, switches

    def _run(self, device: _Device, renamed: Mapping[str, str]) -> Iterator[str]:
        """The device's commands in Kathará's order, with the interfaces' names here: its settings, what all devices
        run, its own startup, and `exec`."""
        if device.has_ipv6:
            yield IPV6_ON
        found = [*device.sysctls]
        for script in (f"{SHARED}.startup", f"{device.name}.startup"):
            if (text := self._beside.text(script)) is not None:
                found += self._commands(device, _commands(text), script, 0)
        yield from (_in_our_names(command, renamed) for command in (*found, *device.commands))

    def _commands(self, device: _Device, commands: Sequence[str], where: str, number: int) -> Iterator[str]:
        """Those of a script or of `exec`, which `where` names, at that line of lab.conf."""
        for command in commands:
            if len(command) > LONGEST_COMMAND:
                self._lines.lose(number, f"a command of {where}", device.name, f"longer than {LONGEST_COMMAND} bytes")
            elif _STARTS_A_DAEMON.search(command):
                why = "it starts a program of the image's, which is not here; `routing:` or `packages:` may replace it"
                self._lines.lose(number, f"{where}: {command[:40]}", device.name, why)
            else:
                yield command
        if commands:
            why = "`run:` here, in minigts' own system, where a command that fails ends `up`"
            self._lines.notes.add(where, device.name, why)

    def _files(self, device: _Device, renamed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """What of the device's directory is copied. A file that names an interface means another one here."""
        found = self._beside.files(device.name)
        if len(found) > MOST_FILES:
            why = f"{len(found)} files; a host takes {MOST_FILES}"
            self._lines.lose(0, f"the directory {device.name}", device.name, why)
            return
        for path, content in found:
            target = f"/{PurePosixPath(path).relative_to(device.name)}"
            try:
                checked_source(path)
                checked_target(target)
            except ValueError as error:
                self._lines.lose(0, path, device.name, str(error))
                continue
            if content is None:
                self._lines.lose(0, path, device.name, "it is no plain file, or too large")
            elif named := [name for name in renamed if names_interface(content, name)]:
                why = (
                    f"it names {named[0]}, which is {renamed[named[0]]} here: change it there, and copy it by `files:`"
                )
                self._lines.lose(0, path, device.name, why)
            else:
                yield path, target
        if found:
            self._lines.notes.add("the directory", device.name, "`files:` here; its programs are not here")


def _wanted(end: tuple[str, int, str | None, int]) -> WantedLink:
    _, index, _, line = end
    return WantedLink((line,), port_name(index), index)


def _commands(script: str) -> list[str]:
    """The commands of a startup: its lines; all of it together where lines depend on each other."""
    lines = [line.strip() for line in script.splitlines()]
    kept = [line for line in lines if line and not line.startswith("#")]
    return ["\n".join(kept)] if kept and _SEVERAL_LINES.search("\n".join(kept)) else kept


def _in_our_names(command: str, renamed: Mapping[str, str]) -> str:
    return _INTERFACE.sub(lambda found: renamed.get(found[0], found[0]), command)


def _unquoted(value: str) -> str:
    value = value.strip()
    quoted = re.fullmatch(r"""(["'])(.*?)\1\s*(?:#.*)?""", value, re.ASCII)
    return quoted[2] if quoted else value.partition(" #")[0].strip()


def _is_share(value: str) -> bool:
    try:
        return 0.05 <= float(value[:10]) <= 64 and (float(value[:10]) < 1 or float(value[:10]).is_integer())
    except ValueError:
        return False
