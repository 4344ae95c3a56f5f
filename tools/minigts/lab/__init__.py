"""A lab: a plan that a provider has brought up. It outlives the command that made it, in one run directory.

`record`: names, run directories, a lab's records and its lock. `events`: the log of a lab's changes.
`life`: up, down, kill, restart. `altering`: adding and removing hosts and links. `kept` and `saved`: disks that outlive
a lab. `links`: how every port should be set now, and all shaping. `playing`: links that change by a schedule. `routes`:
the routes that a routing protocol has found. `calibration`: the emulator's own latency, measured. Overlays and
measurements use this room and are elsewhere.
"""

from minigts.lab.kept import disk_bytes, keep, running
from minigts.lab.life import bring_up, down, kill, pause, restart, resume, up, wanted
from minigts.lab.links import (
    adjust_link,
    calibrate,
    carrier,
    change_link,
    changed_links,
    cut_links,
    dead_links,
    losing_all,
    mend_all,
    plan_now,
    reshape,
    restore_links,
    separate,
    set_link,
    set_link_named,
    set_links,
    whole_links,
    whole_paths,
)
from minigts.lab.record import (
    DECLARED,
    Change,
    Lab,
    Progress,
    Record,
    Settings,
    all_labs,
    checked_name,
    exclusive,
    open_lab,
)
from minigts.lab.saved import Saved, all_saved, delete, restore, save, saved_named

__all__ = [
    "DECLARED",
    "Change",
    "Lab",
    "Progress",
    "Record",
    "Saved",
    "Settings",
    "adjust_link",
    "all_labs",
    "all_saved",
    "bring_up",
    "calibrate",
    "carrier",
    "change_link",
    "changed_links",
    "checked_name",
    "cut_links",
    "dead_links",
    "delete",
    "disk_bytes",
    "down",
    "exclusive",
    "keep",
    "kill",
    "losing_all",
    "mend_all",
    "open_lab",
    "pause",
    "plan_now",
    "reshape",
    "restart",
    "restore",
    "restore_links",
    "resume",
    "running",
    "save",
    "saved_named",
    "separate",
    "set_link",
    "set_link_named",
    "set_links",
    "up",
    "wanted",
    "whole_links",
    "whole_paths",
]
