"""What containerlab runs on a node and sets in its kernel (`exec`, `sysctls`), as commands of our `run:`. Pure.

    exec: ["ip addr add 192.0.2.1/24 dev net0"]        run: ["ip addr add 192.0.2.1/24 dev eth1"]
    sysctls: {net.ipv4.ip_forward: 0}                  run: ["sysctl -w net.ipv4.ip_forward=0"]

`exec` splits words as a shell does and runs no shell, so what a shell would substitute is quoted. Renamed interfaces
get their new names. A name without a digit, such as `uplink`, may be another word of the command, and is replaced only
where the kernel does not know it: in the paths of settings, and in the rules of a packet filter.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from minigts.formats.yaml_document import Document, Layers
from minigts.language import interface_names
from minigts.language.problems import Location, quote

FILLED_IN = re.compile(r"(\$[A-Za-z_][A-Za-z0-9_]*)|__clab(?:NodeDir|Dir)__")
"""Variables without a value, and what containerlab substitutes where it runs."""
IPV6_ON = "sysctl -qw net.ipv6.conf.all.disable_ipv6=0"
"""A container has IPv6 on, with addresses of its links; a host of a lab without `ipv6:` has it off."""
_SYSCTL = re.compile(r"[a-z][a-z0-9_]*(?:[./][A-Za-z0-9_-]+){1,9}", re.ASCII)
_FOR_LATER = re.compile(r"([./])default([./])")
MANAGEMENT = "eth0"
_WORD = r"(?<![A-Za-z0-9_-]){}(?![A-Za-z0-9_-])"
_OF_SETTINGS = r"((?:/sys/class/net/|\b(?:conf|neigh)[./])){}(?![A-Za-z0-9_-])"
_MATCHES = "-i|-o|--in-interface|--out-interface|--physdev-in|--physdev-out|iif|oif|iifname|oifname"
_OF_FILTERS = rf"((?:^|\s)(?:{_MATCHES})[\s=!'\"]+){{}}(?![A-Za-z0-9_-])"
_FILTER = re.compile(r"\b(?:ip6?|eb|arp)tables\b|\bnft\b", re.ASCII)


def run(
    document: Document,
    settings: Layers,
    name: str,
    lab: str,
    renamed: Mapping[str, str],
    own: Sequence[str | None],
    here: Sequence[str],
    first: Sequence[str] = (),
) -> tuple[str, ...]:
    """The commands for node `name` of the lab. `renamed` has its renamed interfaces, `own` all of them by their names
    in the file, and `here` by those in the lab. `first` run before those of the file."""
    found = dict.fromkeys((IPV6_ON, *_sysctls(document, settings, here), *first))
    for what, command, where in _commands(document, settings, name, lab):
        if (why := _why_not(command, renamed, own)) is not None:
            document.lose(where, what, name, why)
        else:
            found[_in_our_names(command, renamed)] = None
    for key in ("sysctls", "exec"):
        if settings.get(key)[0]:
            document.notes.add(key, name, "`run:` here, in minigts' own system, where a command that fails ends `up`")
    return tuple(found)


def _commands(document: Document, settings: Layers, name: str, lab: str) -> Iterator[tuple[str, str, Location]]:
    for data, where in settings.every("exec"):
        for command in document.texts(data, where):
            what = f"exec {command[:40]}"
            plain = command.replace("__clabNodeName__", name).replace("__clabLabName__", f"clab-{lab}")
            try:
                words = shlex.split(plain)
            except ValueError:
                words = []
            if not words or FILLED_IN.search(plain):
                document.lose(where, what, name, lack_of_value(plain) or "it is a command of plain words")
            else:
                yield what, shlex.join(words), where


def lack_of_value(text: str) -> str:
    """Why a text with something that is not filled in is not taken; empty for another text."""
    if (found := FILLED_IN.search(text)) is None:
        return ""
    if found[1] is None:
        return f"{found[0]} is not filled in here: write it out"
    name = found[1][:41]
    return f"{name} has no value in your environment, and no default: set it, or write ${{{name[1:]}:-value}}"


def _sysctls(document: Document, settings: Layers, ports: Sequence[str]) -> Iterator[str]:
    """Each setting with its nearest value, in the order of the places. A `default` for later interfaces holds for those
    of links, too: containerlab sets it before it creates them."""
    found: dict[str, str] = {}
    for data, where in settings.every("sysctls"):
        for key, value in document.mapping(data, where).items():
            if _SYSCTL.fullmatch(key) and isinstance(value, str) and not FILLED_IN.search(value):
                found[key] = value
            else:
                document.wrong(
                    (*where, key), f"{quote(value)} of {quote(key)} is no setting, as in net.ipv4.ip_forward: 1"
                )
    for key, value in found.items():
        later = _FOR_LATER.search(key)
        each = [_FOR_LATER.sub(rf"\g<1>{port}\g<2>", key) for port in ports] if later else []
        yield from (shlex.join(["sysctl", "-w", f"{one}={value}"]) for one in (key, *each))


def _why_not(command: str, renamed: Mapping[str, str], own: Sequence[str | None]) -> str | None:
    """Why a command would do something else in the lab; None where it would not."""
    if MANAGEMENT not in own and re.search(_WORD.format(MANAGEMENT), command):
        return f"{MANAGEMENT} leads to the management network, which is not here"
    for name, ours in renamed.items():
        known = interface_names.why_not(name) is None
        if not known and not re.search(r"[0-9]", name) and re.search(_WORD.format(re.escape(name)), command):
            return f"interface {name[:40]} is {ours} here, and in a command the name may mean something else"
    return None


def _in_our_names(command: str, renamed: Mapping[str, str]) -> str:
    """The command with the interfaces' new names, also as a part of another: `net0.10` becomes `eth1.10`."""
    for name in (name for name in renamed if not re.search(r"[0-9]", name)):
        for pattern in (_OF_SETTINGS, *((_OF_FILTERS,) if _FILTER.search(command) else ())):
            command = re.sub(pattern.format(re.escape(name)), rf"\g<1>{renamed[name]}", command)
    names = [re.escape(name) for name in sorted(renamed, key=len, reverse=True) if re.search(r"[0-9]", name)]
    if not names:
        return command
    return re.sub(_WORD.format(f"({'|'.join(names)})"), lambda found: renamed[found[1]], command)
