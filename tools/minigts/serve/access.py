"""Who may ask: whoever has the token, from this page, under this name. Pure.

Another page in the same browser can send requests here, and a name of its own can be made to lead here (DNS rebinding).
So each request has to name a host that this program was bound to, and none may come from another origin. Other users of
the machine can reach loopback, too: without the token nobody looks.

The token is never a cookie. Browsers send cookies to every port of an address, so a program in a lab that `minigts
forward` leads to would be sent it. The printed address has it behind the `#`, which a browser sends to nobody; the page
keeps it for its own origin alone, port included, and says it in a header, which no other page can make it say.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from minigts.errors import InputError

OPEN = ("/page/", "/xterm/")
"""What the program itself shows to everybody, beside `/`: its page and its scripts, in which nothing is of a lab."""
SCHEME = "Bearer "
"""How `Authorization:` begins (RFC 6750)."""
PROTOCOL, SAID = "minigts", "minigts.token."
"""A websocket has no such header: a page offers the subprotocol PROTOCOL, and one that is SAID with the token."""
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
        # xterm.js writes its own style elements, which hold nothing but sizes and colours.
        "style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
REPORT_HEADERS: Mapping[str, str] = {
    **HEADERS,
    "Content-Security-Policy": (
        "sandbox allow-popups; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
    ),
}
"""A report is a page with figures and no script; what a results folder holds may come from others."""


@dataclass(frozen=True)
class Access:
    """The rules of one server, bound to `address` and `port`."""

    address: str
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @property
    def hosts(self) -> frozenset[str]:
        """What `Host:` may say."""
        address = ipaddress.ip_address(self.address)
        names = {f"[{address}]" if address.version == 6 else str(address)}
        if address.is_loopback:
            names.add("localhost")
        return frozenset(f"{name}:{self.port}" for name in names)

    @property
    def origins(self) -> frozenset[str]:
        return frozenset(f"http://{host}" for host in self.hosts)

    @property
    def url(self) -> str:
        """What a user opens; the token is in it."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}/#token={self.token}"

    def ticket(self, report: str) -> str:
        """What shows that report and nothing else: a browser that follows a link says no header. It is in the link."""
        return hmac.new(self.token.encode(), report.encode(errors="replace"), hashlib.sha256).hexdigest()

    def is_token(self, given: str | None) -> bool:
        return given is not None and _same(given, self.token)

    def is_ticket(self, report: str, given: str | None) -> bool:
        return given is not None and _same(given, self.ticket(report))

    def refusal(self, *, host: str | None, origin: str | None, changes: bool, allowed: bool) -> str | None:
        """Why a request is refused; None when it is not. `changes`: it can change something, or is a websocket, which
        browsers open to any place: then it has to say that it comes from this page. `allowed`: it needs no token, or
        has it.
        """
        if host not in self.hosts:
            return f"this is not {host!a}: open the address that minigts serve has printed"
        if origin is not None and origin not in self.origins:
            return f"nothing is answered to a page of {origin!a}"
        if changes and origin is None:
            return "a request that can change something has to say where it comes from (Origin)"
        if not allowed:
            return "the token is missing or wrong: open the address that minigts serve has printed"
        return None


def said_token(authorization: str | None, protocols: str | None) -> str | None:
    """The token in `Authorization:`, or in what a websocket offers: `minigts, minigts.token.…`."""
    if authorization is not None and authorization.startswith(SCHEME):
        return authorization.removeprefix(SCHEME)
    offered = [each.strip() for each in (protocols or "").split(",")]
    return next((each.removeprefix(SAID) for each in offered if each.startswith(SAID)), None)


def is_open(path: str) -> bool:
    """Whether what lies there is shown without a token."""
    return path == "/" or path.startswith(OPEN)


def _same(given: str, right: str) -> bool:
    """Compared in a time that does not tell how much of it is right."""
    return hmac.compare_digest(given.encode(errors="replace"), right.encode())


def checked_address(word: str) -> str:
    """An address to be bound to. Raises InputError for what is none, and for one that stands for all of them."""
    try:
        address = ipaddress.ip_address(word)
    except ValueError:
        raise InputError(f"--listen: {word!a} is no address: write one of this machine's, as in 192.168.1.5") from None
    if address.is_unspecified:
        raise InputError(f"--listen: {word} stands for every address: name the one at which the page is opened")
    return str(address)


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback
