"""The command line. `app` starts and ends it; `first`, `labs`, `links`, `altering`, `hosts`, `capture`, `top`,
`events`, `limits`, `serve`, `access`, `saved`, `containers`, `policy`, `exchange`, `experiments`, `bundles`, `lessons`,
`project` and `completion` hold a short function for each verb, `libvirt` those that only virtual machines need;
`screen` is how it looks, `known` what a shell completes. Nothing else prints; what a verb does is done elsewhere.
"""

# In this order the verbs are listed.
from minigts.cli import first  # isort: skip
from minigts.cli import labs  # isort: skip
from minigts.cli import links  # isort: skip
from minigts.cli import altering  # isort: skip
from minigts.cli import hosts  # isort: skip
from minigts.cli import capture  # isort: skip
from minigts.cli import top  # isort: skip
from minigts.cli import events  # isort: skip
from minigts.cli import limits  # isort: skip
from minigts.cli import serve  # isort: skip
from minigts.cli import access  # isort: skip
from minigts.cli import saved  # isort: skip
from minigts.cli import containers  # isort: skip
from minigts.cli import policy  # isort: skip
from minigts.cli import exchange  # isort: skip
from minigts.cli import experiments  # isort: skip
from minigts.cli import bundles  # isort: skip
from minigts.cli import lessons  # isort: skip
from minigts.cli import project  # isort: skip
from minigts.cli import completion  # isort: skip
from minigts.cli import libvirt  # isort: skip
from minigts.cli.app import main

__all__ = [
    "access",
    "altering",
    "bundles",
    "capture",
    "completion",
    "containers",
    "events",
    "exchange",
    "experiments",
    "first",
    "hosts",
    "labs",
    "lessons",
    "libvirt",
    "limits",
    "links",
    "main",
    "policy",
    "project",
    "saved",
    "serve",
    "top",
]
