"""The kernel settings that a host may have, by their names in sysctl(8): buffers, queues, congestion control. Pure.

Those of BASELINE every host has, and its containers inherit them. Any other under `net.` may be in a file, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from minigts.language.fields import unknown
from minigts.language.problems import quote

MOST = 2**31 - 1
LEAST_BUFFER = 4608
"""The least default or largest buffer of a socket that a kernel accepts (include/net/sock.h, SOCK_MIN_SNDBUF)."""
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
CONGESTION_CONTROLS = ("bbr", "cubic", "dctcp", "htcp", "reno", "vegas", "westwood")
"""The algorithms of minigts' own kernel (provision/kernel/config); Debian's has them as modules."""


@dataclass(frozen=True)
class _Setting:
    baseline: str
    """The default of Linux 7.2 where memory is no limit, from 4 GiB on (net/core/sock.c, net/ipv4/tcp.c)."""
    least: int = 0
    """The lower bound of each of its numbers."""
    words: tuple[str, ...] = ()
    """The words that it takes instead of numbers."""

    def wrong(self, value: str) -> str | None:
        """What a value has to be; None when it is valid."""
        if self.words:
            return None if value in self.words else f"one of {', '.join(self.words)}"
        words, wanted = value.split(" "), self.baseline.count(" ") + 1
        numbers = [int(word) for word in words if _NUMBER.fullmatch(word)]
        within = all(self.least <= number <= MOST for number in numbers)
        if len(words) == len(numbers) == wanted and within and numbers == sorted(numbers):
            return None
        if wanted == 1:
            return f"a whole number from {self.least} to {MOST}, as in {self.baseline}"
        return f"three whole numbers from {self.least} to {MOST}, the smallest first, as in {self.baseline}"


CONGESTION = "net.ipv4.tcp_congestion_control"
_SETTINGS = {
    "net.core.netdev_max_backlog": _Setting("1000"),
    "net.core.rmem_default": _Setting("212992", LEAST_BUFFER),
    "net.core.rmem_max": _Setting("4194304", LEAST_BUFFER),
    "net.core.wmem_default": _Setting("212992", LEAST_BUFFER),
    "net.core.wmem_max": _Setting("4194304", LEAST_BUFFER),
    CONGESTION: _Setting("cubic", words=CONGESTION_CONTROLS),
    "net.ipv4.tcp_rmem": _Setting("4096 131072 33554432", 1),
    "net.ipv4.tcp_wmem": _Setting("4096 16384 4194304", 1),
}
BASELINE: Mapping[str, str] = {name: setting.baseline for name, setting in _SETTINGS.items()}
"""What every host and switch has unless the file says otherwise."""
ECN = "net.ipv4.tcp_ecn"
ECN_VALUES: Mapping[str, str] = {"off": "0", "on": "1", "accurate": "3"}
"""What a host's `ecn:` sets it to, by word. Linux's own, 2, accepts ECN and does not ask for it. It is no baseline: a
host without `ecn:` has its kernel's own value, and is not asked for it."""
READ_BACK = (*BASELINE, ECN)
"""The settings that every kernel has and shows."""
MOST_SETTINGS = len(BASELINE) + 101
_LONGEST_NAME, _LONGEST_VALUE = 120, 200
_OTHER = re.compile(r"net(?:\.[A-Za-z0-9_][A-Za-z0-9_/-]*)+", re.ASCII)
"""A name of a setting beyond the baseline; no part of it names a folder above /proc/sys/net."""
_OTHER_VALUE = re.compile(r"[!-~]+(?: [!-~]+)*", re.ASCII)
_OF_THE_LAB = re.compile(
    r"net\.ipv4\.(?:ip_forward|conf\.(?:all|default)\.(?:rp_filter|forwarding)|conf\.all\.arp_(?:ignore|announce)"
    r"|tcp_no_metrics_save|fib_multipath_hash_.*)"
    r"|net\.ipv6\.(?:fib_multipath_hash_.*"
    r"|conf\..*\.(?:forwarding|accept_dad|accept_ra|autoconf|router_solicitations|disable_ipv6))",
    re.ASCII,
)
"""Settings by which a lab makes its hosts forward as planned."""


class Sysctl(BaseModel):
    """One setting in a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Field(max_length=_LONGEST_NAME)]
    value: Annotated[str, Field(max_length=_LONGEST_VALUE)]

    @model_validator(mode="after")
    def _is_one(self) -> Sysctl:
        if self.name != ECN or self.value not in ECN_VALUES.values():
            check_settings({self.name: self.value})
        return self

    @property
    def in_words(self) -> str:
        """`net.core.rmem_default = 4194304`."""
        return f"{self.name} = {self.value}"


def check_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings sorted by name. Raises ValueError for a name that is none, and for a wrong value."""
    if len(settings) >= MOST_SETTINGS:
        raise ValueError(f"{len(settings)} settings; at most {MOST_SETTINGS - 1} are possible")
    for name, value in settings.items():
        if name not in _SETTINGS:
            _require_other(name, value)
        elif (wanted := _SETTINGS[name].wrong(value)) is not None:
            raise ValueError(f"{name}: {quote(value)} is not {wanted}")
    return dict(sorted(settings.items()))


def _require_other(name: str, value: str) -> None:
    if not _OTHER.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise ValueError(f"{unknown('setting', 'settings', name, [*_SETTINGS])}, and any other that begins with net.")
    if meant := next((known for known in _SETTINGS if sorted(known) == sorted(name)), None):
        raise ValueError(f"no setting {quote(name)}; did you mean {quote(meant)}?")
    if name == ECN:
        raise ValueError(f"{name}: write `ecn:` of the host")
    if _OF_THE_LAB.fullmatch(name):
        raise ValueError(f"{name} is the lab's own: by it a host forwards as planned")
    if not _OTHER_VALUE.fullmatch(value) or len(value) > _LONGEST_VALUE:
        wanted = f"words of at most {_LONGEST_VALUE} characters, as in 1 or 4096 16384"
        raise ValueError(f"{name}: {quote(value)} is not a setting's value: write {wanted}")


def others(settings: Iterable[Sysctl]) -> dict[str, str]:
    """Those beyond the baseline, which not every kernel has."""
    return {each.name: each.value for each in settings if each.name not in READ_BACK}


def path_of(name: str) -> str:
    """The file of a setting. A slash in a name is a dot in the file's, as in sysctl(8)."""
    return f"/proc/sys/{name.translate(str.maketrans('./', '/.'))}"


def set_to(settings: Iterable[Sysctl]) -> dict[str, str]:
    """All settings of a machine's kernel: the baseline with `settings` in it, and ECN where it is one of them."""
    return {**BASELINE, **{each.name: each.value for each in settings}}


def tuning_lines(hosts: Iterable[tuple[str, Iterable[Sysctl]]]) -> list[str]:
    """`ams, bra: net.core.rmem_default = 4194304`, a line for all hosts with the same settings, if they have any."""
    alike: dict[str, list[str]] = {}
    for host, settings in hosts:
        if words := ", ".join(each.in_words for each in settings):
            alike.setdefault(words, []).append(host)
    return [f"{', '.join(names)}: {words}" for words, names in alike.items()]


def is_of_whole_kernel(name: str) -> bool:
    """Whether hosts that share a kernel cannot have it separately (Documentation/admin-guide/sysctl/net.rst)."""
    return name.startswith("net.core.")


def _written(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        example = "net.core.rmem_default: 4194304"
        raise ValueError(f"{quote(value)} is no mapping of settings: write them as in {{{example}}}")
    for name, each in value.items():
        if not isinstance(each, str):
            raise ValueError(
                f"{name}: {quote(each)} is not what a setting may be: write it as in {BASELINE.get(name, 1)}"
            )
    return check_settings({name: " ".join(each.split()) for name, each in value.items()})


def _schema() -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _schema_of(setting) for name, setting in _SETTINGS.items()},
        "patternProperties": {r"^net\.": {"type": ["string", "integer"]}},
    }


def _schema_of(setting: _Setting) -> dict[str, Any]:
    if setting.words:
        return {"enum": [*setting.words]}
    if " " not in setting.baseline:
        return {"type": "integer", "minimum": setting.least, "maximum": MOST, "examples": [int(setting.baseline)]}
    return {"type": "string", "pattern": "^[0-9]{1,10}( [0-9]{1,10}){2}$", "examples": [setting.baseline]}


WRITTEN = (BeforeValidator(_written), WithJsonSchema(_schema()))
"""The annotations of a field with a mapping of names to values, as in a file."""
