"""What an agent can do with one lab: each tool is a verb of the command line, with the lab's name and bounds.

A tool runs minigts as a program of its own, as a user at a terminal would, so it says and refuses what the verb does,
and it ends with the server. Nothing that an agent writes becomes an option of a verb or a path of this machine: names
are names, words stand behind `--`, and files are those of a host.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from minigts import foreign
from minigts.errors import CommandFailed, CommandTimeout, InputError
from minigts.foreign import Foreign
from minigts.lab import open_lab
from minigts.machine import shell
from minigts.topology import link_rules
from minigts.topology.link_settings import Shaping
from minigts.topology.plan import link_names
from minigts.topology.plan.elements import HostPort, Port
from minigts.topology.plan.plan import Plan

MOST_SAID = 20_000
"""The most characters of one answer; the rest is left out from its middle."""
MOST_WRITTEN = 1_000_000
"""The most characters of a file that an agent writes."""
LONGEST_S = 600.0
"""The longest that one call may take by the lab's time."""
MOST_HEARD_BYTES = 10 << 20
"""The most that a tool's program prints before it is ended."""
LONGEST_WORD = 100_000
"""The most bytes of a word that an agent writes: Linux takes none of more than 131,071."""
STEP_S = 5.0
"""How far the lab's time goes before `wait` looks whether its agent has gone."""
REAL_LIMIT_S = 3600.0
"""The longest that one call may take by this machine's clock."""
_NAME = re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:/%-]{0,99}")
_SETTING = re.compile(r"[a-z][a-z.]{0,39}=[A-Za-z0-9%][A-Za-z0-9 .%/:_-]{0,99}")
_SHOWN: Mapping[str, str] = {
    "addresses": "ip address show",
    "routes": "ip route show table all; ip -6 route show table main",
    "neighbours": "ip neighbour show",
    "interfaces": "ip -statistics link show",
    "sockets": "ss -a -n -t -u -p",
    "firewall": "iptables-save; ip6tables-save; nft list ruleset 2>/dev/null",
    "queues": "tc -s qdisc show",
    "processes": "ps -e -o pid,ppid,stat,args",
    "sysctls": r"sysctl -a --pattern '^net\.(ipv4\.(ip_|icmp_|tcp_|fib)|ipv[46]\.conf\.(all|default)\.)' 2>/dev/null",
    "resolver": "cat /etc/resolv.conf /etc/hosts",
    "containers": "command -v docker >/dev/null && docker ps -a --no-trunc || echo no containers",
    "routing": "none=1; for ctl in /run/minigts/underlay/*/bird.ctl /run/bird/bird.ctl; do"
    ' [ ! -S "$ctl" ] || { none=; birdc -s "$ctl" show protocols all; }; done;'
    " [ -z \"$none\" ] || vtysh -c 'show running-config' -c 'show ip route' 2>/dev/null || echo no daemon",
}
READ = """\
[ -f "$0" ] || { echo "$0 is no plain file" >&2; exit 1; }
case $(stat -L -f -c %T -- "$0"):$(readlink -f -- "$0") in
  proc:*/kmsg | tracefs:* | debugfs:*) echo "$0 is another one once it is read" >&2; exit 1 ;;
esac
exec head -c 100000 -- "$0"
"""
"""Of a plain file alone: to open a device or a pipe, such as that of a host's agent, may change what it is for, and so
may reading what the kernel has said or traced."""
_WRITE = 'mkdir -p "${0%/*}/" && cat >"$0"'
_PROGRAM = """\
import runpy, sys
from minigts.machine import shell
shell.die_with_parent(int(sys.argv.pop(1)))
runpy.run_module("minigts", run_name="__main__", alter_sys=True)
"""
LOOKS = tuple(_SHOWN)
"""What `look` shows of a host."""


@dataclass(frozen=True)
class _End:
    host: str
    interface: str


@dataclass(frozen=True)
class Desk:
    """The tools for the lab of that name."""

    lab: str
    broken_off: threading.Event = field(default_factory=threading.Event)
    """Set by another thread when nobody wants the answer any more."""

    def status(self) -> str:
        return self._verb("status", "--lab", self.lab)

    def topology(self) -> str:
        """Machines with their interfaces, and links as the topology declares them, a line each."""
        plan = open_lab(self.lab).plan
        machines = [
            f"{machine.name}: " + ", ".join(_port(plan, port) for port in machine.ports) for machine in plan.machines
        ]
        links = [
            f"{link.name} ({' and '.join(link.ends)}): "
            + "; ".join(f"from {end} {_way(way)}" for end, way in zip(link.ends, plan.directions(link), strict=True))
            for link in plan.links
        ]
        return "\n".join([*machines, "", *links])

    def explain(self, first: str, second: str = "") -> str:
        return self._verb("explain", "--lab", self.lab, "--", _name(first), *([_name(second)] if second else []))

    def events(self) -> str:
        return self._verb("events", "--lab", self.lab)

    def logs(self, host: str, only: str = "") -> str:
        return self._verb("logs", "--lab", self.lab, *(["--only", _name(only)] if only else []), "--", _name(host))

    def look(self, host: str, what: str) -> str:
        if what not in _SHOWN:
            raise InputError(f"{what!r} is nothing that can be looked at; there are {', '.join(LOOKS)}")
        return self._on(host, ["sh", "-c", _SHOWN[what]], 30)

    def read_file(self, host: str, path: str) -> str:
        return self._on(host, ["sh", "-c", READ, _path(path)], 30)

    def ping(self, source: str, target: str, count: int = 3, size: int = 56, *, whole: bool = False) -> str:
        bounds = ["-c", str(_bounded(count, 1, 100)), "-W", "2", "-s", str(_bounded(size, 0, 65000))]
        return self._on(source, ["ping", *bounds, *(["-M", "do"] if whole else []), "--", _name(target)], 240)

    def trace(self, source: str, target: str) -> str:
        return self._on(source, ["traceroute", "-n", "-w", "1", "-q", "1", "--", _name(target)], 60)

    def capture(self, link: str, at: str = "", words: str = "", seconds: float = 5, count: int = 100) -> str:
        chosen = words.split()
        if any(word.startswith("-") for word in chosen):
            raise InputError("a filter is as tcpdump's, such as `icmp` or `tcp port 80`; it has no options")
        port = self._port(link, at)
        bounds = [
            "timeout",
            "--preserve-status",
            f"{_bounded(seconds, 0.1, LONGEST_S):g}",
            "tcpdump",
            "-n",
            "-l",
            "-tttt",
        ]
        argv = [*bounds, "-i", port.interface, "-c", f"{_bounded(count, 1, 500):g}", *chosen]
        return self._on(port.host, argv, seconds + 30)

    def wait(self, seconds: float) -> str:
        """Let the lab's time pass."""
        left_s = _bounded(seconds, 0.001, LONGEST_S)
        while left_s > 0 and not self.broken_off.is_set():
            provider = open_lab(self.lab).provider
            provider.sleep_until(provider.now_s() + min(left_s, STEP_S))
            left_s -= STEP_S
        return f"{seconds:g} s have passed in the lab"

    def run(self, host: str, command: str, seconds: float = 30) -> str:
        return self._on(host, ["bash", "-c", command], _bounded(seconds, 0.1, LONGEST_S))

    def write_file(self, host: str, path: str, text: str) -> str:
        if len(text) > MOST_WRITTEN:
            raise InputError(f"{len(text)} characters, where a file may have {MOST_WRITTEN}")
        where = _path(path)
        said = self._on(host, ["sh", "-c", _WRITE, where], 60, text)
        if re.search(r"^exit code \d+\Z", said, re.MULTILINE):
            raise InputError(f"{where} on {host} was not written: {said}")
        return f"{where} on {host} has {len(text)} characters now"

    def set_link(self, link: str, settings: Sequence[str], sender: str = "", *, reset: bool = False) -> str:
        if wrong := [each for each in settings if not _SETTING.fullmatch(each)]:
            raise InputError(f"{wrong[0]!r} is no setting: write it as `delay=40ms`, `rate=10mbit` or `loss=1%`")
        options = [*(["--from", _name(sender)] if sender else []), *(["--reset"] if reset else [])]
        return self._verb("set", "--lab", self.lab, *options, "--", _name(link), *settings)

    def link(self, link: str, state: str, end: str = "", *, silent: bool = False) -> str:
        if state not in ("up", "down"):
            raise InputError(f"{state!r}: a link goes `up` or `down`")
        options = [*(["--end", _name(end)] if end else []), *(["--silent"] if silent else [])]
        return self._verb("link", "--lab", self.lab, *options, "--", _name(link), state)

    def play(self) -> str:
        return self._verb("play", "--lab", self.lab)

    def restart(self, host: str) -> str:
        return self._verb("restart", "--lab", self.lab, "--", _name(host))

    def _port(self, link: str, at: str) -> _End:
        """The link's end at that host, or its first one at a host."""
        plan = open_lab(self.lab).plan
        found = link_names.link_named(plan, _name(link))
        if wrong := link_rules.strange_end(at or None, found.name, found.ends):
            raise InputError(wrong)
        hosts = [end for end in found.ends if end in {each.name for each in plan.hosts}]
        host = at or (hosts or found.ends)[0]
        return next(_End(host, port.name) for port in plan.machine(host).ports if port.link == found.name)

    def _on(self, host: str, argv: Sequence[str], seconds: float, stdin: str | None = None) -> str:
        known = [each.name for each in open_lab(self.lab).plan.hosts]
        if host not in known:
            raise InputError(f"no host {host[:60]!r}; there are {', '.join(known)}")
        return self._executed(_name(host), list(map(word, argv)), seconds, None if stdin is None else utf8_of(stdin))

    def _executed(self, host: str, argv: Sequence[str], seconds: float, stdin: bytes | None) -> str:
        """What a command on a host prints, and its exit code."""
        given = [] if stdin is None else ["--stdin"]
        words = ["exec", "--lab", self.lab, "--timeout", f"{seconds:g}", *given, host, "--", *argv]
        return self._verb(*words, stdin=stdin or b"")

    def _verb(self, *words: str, stdin: bytes = b"") -> str:
        """What the verb prints, and its exit code where that is not 0. Raises InputError for what it refuses."""
        argv = [sys.executable, "-P", "-c", _PROGRAM, str(os.getpid()), *map(word, words)]
        try:
            ended = shell.run_bounded(
                argv,
                timeout_s=REAL_LIMIT_S,
                most_bytes=MOST_HEARD_BYTES,
                stdin=stdin,
                broken_off=self.broken_off,
            )
        except CommandFailed as error:
            return f"{_text(error.out)}\n{_text(error.err)}\nit was ended, since it printed more than 10 MB"
        except CommandTimeout:
            return f"this took more than {REAL_LIMIT_S:g} s of this machine's time, and was ended"
        if ended.code == InputError.exit_code and words[0] != "exec":
            complained = _text(Foreign(ended.stderr)).removeprefix("minigts: ").strip()
            raise InputError(complained or _text(Foreign(ended.stdout)))
        return answer_text(Foreign(ended.stdout), Foreign(ended.stderr), ended.code)


def answer_text(said: Foreign, complained: Foreign, code: int) -> str:
    """What an agent is told of a command: what it printed, and its exit code where that is not 0."""
    parts = [_text(said).rstrip("\n"), _text(complained).rstrip("\n"), f"exit code {code}" if code else ""]
    return "\n".join(part for part in parts if part) or "(it printed nothing)"


def _port(plan: Plan, port: Port) -> str:
    ways = port.on_segments if isinstance(port, HostPort) else ()
    addresses = [each.segment_address(way) for way in ways for each in plan.addressings]
    return " ".join((port.name, *addresses, f"on {port.link}"))


def _way(way: Shaping) -> str:
    rate = f"{way.rate_mbit:g} Mbit/s" if way.rate_mbit is not None else "no limit of the rate"
    loss = f", loss {way.loss_percent:g} %" if way.loss_percent else ""
    return f"{way.delay_ms:g} ms, {rate}{loss}"


def _text(word: Foreign) -> str:
    """A stranger's words, without control characters, and of a bounded length."""
    text = foreign.screen_text(word, 1 << 24)
    left_out = len(text) - MOST_SAID
    if left_out <= 0:
        return text
    half = MOST_SAID // 2
    return f"{text[:half]}\n… {left_out} characters are left out …\n{text[-half:]}"


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise InputError(f"{text[:60]!r} is no name of a host or a link, and no address")
    return text


def utf8_of(text: str) -> bytes:
    """Raises InputError for half a character of UTF-16, which JSON can hold."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{text[error.start : error.end]!a} is no character") from error


def word(text: str) -> str:
    """A word of a command. Raises InputError for what Linux does not take as one."""
    if (size := len(utf8_of(text))) > LONGEST_WORD:
        raise InputError(f"{size} bytes, where a command, a path or a filter may have {LONGEST_WORD}")
    if "\0" in text:
        raise InputError("a command, a path or a filter has no character NUL")
    return text


def _path(text: str) -> str:
    if not text.startswith("/"):
        raise InputError(f"{text[:60]!r}: a path on a host begins with /")
    return text


def _bounded(value: float, least: float, most: float) -> float:
    if not least <= value <= most:
        raise InputError(f"{value:g}, where {least:g} to {most:g} is possible")
    return value
