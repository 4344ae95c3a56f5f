"""Checks requests: each needs the token, the right host name and the page's own origin. Pure.

Another page in the same browser can send requests here, and its host name can be made to resolve here (DNS rebinding).
So each request has to name a host that this server is bound to, and must not come from another origin. Other users of
the machine can reach loopback, too, so each request needs the token.

The token is never a cookie. Browsers send cookies to every port of an address, so a program in a lab, reached through
`minigts forward`, would get it. The printed address has the token after the `#`, which a browser does not send. The
page keeps it for its own origin, port included, and sends it in a header, which other pages cannot set.
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
"""The paths that need no token, in addition to `/`: the page and its scripts, which hold nothing of a lab."""
SCHEME = "bearer "
"""The prefix of `Authorization:` (RFC 6750), in lower case: a scheme's case does not matter (RFC 9110)."""
PROTOCOL, SAID = "minigts", "minigts.token."
"""A browser's websocket cannot set headers: a page offers the subprotocols PROTOCOL, and SAID followed by the token."""
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
        # xterm.js writes its own style elements, which hold only sizes and colours.
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
"""A report is a page with figures and no script. Its folder may come from other people, so scripts are forbidden."""


@dataclass(frozen=True)
class Access:
    """The rules of a server that is bound to `address` and `port`."""

    address: str
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @property
    def hosts(self) -> frozenset[str]:
        """The allowed values of `Host:`."""
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
        """The address that a user opens, with the token."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}/#token={self.token}"

    def ticket(self, report: str) -> str:
        """A key for this report alone, which is part of its link: a browser that follows a link sends no header."""
        return hmac.new(self.token.encode(), report.encode(errors="replace"), hashlib.sha256).hexdigest()

    def is_token(self, given: str | None) -> bool:
        return given is not None and _same(given, self.token)

    def is_ticket(self, report: str, given: str | None) -> bool:
        return given is not None and _same(given, self.ticket(report))

    def refusal(self, *, host: str | None, origin: str | None, changes: bool, allowed: bool) -> str | None:
        """Why a request is refused; None when it is allowed. `changes`: it can change something, or is a websocket,
        which any page may open: then it needs an `Origin:`. `allowed`: it needs no token, or has it.
        """
        if host not in self.hosts:
            return f"this server is not {host!a}: open the address that minigts serve has printed"
        if origin is not None and origin not in self.origins:
            return f"requests from a page of {origin!a} are refused"
        if changes and origin is None:
            return "a request that can change something needs the header Origin"
        if not allowed:
            return "the token is missing or wrong: open the address that minigts serve has printed"
        return None


def said_token(authorization: str | None, protocols: str | None) -> str | None:
    """The token in `Authorization:`, or in a websocket's subprotocols: `minigts, minigts.token.…`; None: none."""
    if authorization is not None and authorization.lower().startswith(SCHEME):
        return authorization[len(SCHEME) :]
    offered = [each.strip() for each in (protocols or "").split(",")]
    return next((each.removeprefix(SAID) for each in offered if each.startswith(SAID)), None)


def is_open(path: str) -> bool:
    """Whether this path needs no token."""
    return path == "/" or path.startswith(OPEN)


def _same(given: str, right: str) -> bool:
    """Compare in constant time, which tells nothing of how much is right."""
    return hmac.compare_digest(given.encode(errors="replace"), right.encode())


def checked_address(word: str) -> str:
    """The address to bind to. Raises InputError for a text that is no address, and for one that means all addresses."""
    try:
        address = ipaddress.ip_address(word)
    except ValueError:
        raise InputError(f"--listen: {word!a} is no address: write one of this machine's, as in 192.168.1.5") from None
    if address.is_unspecified:
        raise InputError(f"--listen: {word} means all addresses: name the one at which the page is opened")
    return str(address)


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback
