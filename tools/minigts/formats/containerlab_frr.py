"""Containerlab's nodes of kind `frr`, and those of Linux with FRR's image: Debian's FRR on a host. Pure.

    r1: {kind: frr, startup-config: r1/frr.conf, extras: {frr: {daemons: [ospfd, bfdd]}}}
    r2: {kind: linux, image: "frrouting/frr:v8.4.1", binds: ["r2/frr.conf:/etc/frr/frr.conf"]}

Its daemons are `zebra`, `mgmtd`, `staticd` and those that the file names; of kind `frr` without a name all. A node's
configuration has its addresses, and its daemons find its routes: hosts of such a file have none of minigts' own.
"""

from __future__ import annotations

import re

from minigts.formats.containerlab_commands import lack_of_value
from minigts.formats.yaml_document import Document, Layers
from minigts.language.host_paths import checked_source

KINDS = ("frr", "frrouting")
PACKAGE = "frr"
KEYS = ("startup-config", "extras")
"""What only these nodes honour."""
CONFIGURATION, DAEMONS = "/etc/frr/frr.conf", "/etc/frr/daemons"
NO_ROUTES = "FRR finds their routes: hosts have none of minigts' own here (`routing: neighbours`)"
START = "chown -R frr:frr /etc/frr; /usr/lib/frr/frrinit.sh start"
_CHOSEN = (
    *("bgpd", "ospfd", "ospf6d", "ripd", "ripngd", "isisd", "pimd", "pim6d", "ldpd", "nhrpd", "eigrpd", "babeld"),
    *("pbrd", "bfdd", "fabricd", "vrrpd", "pathd"),
)
"""The daemons of Debian's package that a file may choose."""
_ALWAYS = ("zebra", "mgmtd", "staticd", "watchfrr")
_IMAGE = re.compile(r"(?:.*/)?frr(?:[:@].*)?", re.ASCII | re.DOTALL)


def is_there(settings: Layers) -> bool:
    """Whether FRR runs on a node."""
    (kind, _), (image, _) = settings.get("kind"), settings.get("image")
    by_image = kind == "linux" and isinstance(image, str) and _IMAGE.fullmatch(image) is not None
    return kind in KINDS or by_image


def configuration(document: Document, settings: Layers, name: str) -> tuple[tuple[str, str], ...]:
    """The node's configuration as a file that is copied; none where it has none."""
    data, where = settings.get("startup-config")
    if data is None or settings.get("kind")[0] not in KINDS:
        return ()
    if not isinstance(data, str) or "\n" in data:
        document.lose(where, "startup-config", name, "write it to a file beside this one, and its path here")
        return ()
    try:
        if why := lack_of_value(data):
            raise ValueError(why)
        checked_source(data)
    except ValueError as error:
        document.lose(where, f"startup-config {data[:40]}", name, str(error))
        return ()
    return ((data, CONFIGURATION),)


def start(document: Document, settings: Layers, name: str, own: tuple[tuple[str, str], ...]) -> str:
    """The command that starts its daemons; `own` are the files that are copied to the node."""
    chosen = _daemons(document, settings, name)
    if DAEMONS in {target for _, target in own}:
        return START
    return f"sed -i -E 's/^({'|'.join(chosen)})=no/\\1=yes/' {DAEMONS}; {START}" if chosen else START


def _daemons(document: Document, settings: Layers, name: str) -> tuple[str, ...]:
    if settings.get("kind")[0] not in KINDS:
        return ()
    extras, where = settings.get("extras")
    frr, place = document.mapping(extras, where).get("frr"), (*where, "frr")
    data = document.mapping(frr, place).get("daemons")
    if data is None:
        return _CHOSEN
    found = []
    for each in document.texts(data, (*place, "daemons")):
        if each in _CHOSEN:
            found.append(each)
        elif each not in _ALWAYS:
            known = ", ".join(_CHOSEN)
            document.lose((*place, "daemons"), f"daemon {each[:40]}", name, f"Debian's package has {known}")
    return tuple(found)
