"""A lab: a plan that a provider has brought up. It outlives the command that made it, in one run directory.

`rundir`: names, run directories, a lab's lock. `record`: what is recorded of a lab; `lab`: what is known by that.
`events`: the log of a lab's changes. `lifecycle`: up, down, kill, restart. `edit`: adding and removing hosts and links.
`keep` and `snapshots`: disks that outlive a lab. `forks`: labs that become two. `current`: how every port should be set
now. `changes`: what users, schedules and experiments ask for. `links`: how it is set, all shaping. `shown_links`: how
it is read back.
`link_states`: which links carry frames, and which are cut or changed.
`schedule_player`: links that change by a schedule. `routes`: the routes that a routing protocol has found. `trees`: the
spanning trees of switches.
`calibration`: the emulator's own latency, measured. Overlays and measurements use this room and are elsewhere.
"""

from minigts.lab.calibration import calibrate
from minigts.lab.changes import (
    heal,
    partition,
    replace_settings,
    restore_links,
    set_back,
    set_for_experiment,
    set_link_up,
    set_links_up,
    update_settings,
)
from minigts.lab.current import link_carrier, plan_now
from minigts.lab.forks import fork, next_fork
from minigts.lab.keep import disk_bytes, keep, running
from minigts.lab.lab import Lab
from minigts.lab.lifecycle import bring_up, down, flush, future_lab, kill, pause, require_parts, restart, resume, up
from minigts.lab.link_states import (
    changed_links,
    cut_links,
    dead_links,
    losing_all,
    other_ways,
    outages_in_words,
    storm_in_words,
    storms,
    used_links,
    whole_links,
    whole_paths,
)
from minigts.lab.links import draw_next, reshape
from minigts.lab.record import DECLARED, Change, Record, Settings
from minigts.lab.rundir import all_labs, checked_name, exclusive, open_lab
from minigts.lab.snapshots import Saved, all_saved, delete, restore, save, saved_named

__all__ = [
    "DECLARED",
    "Change",
    "Lab",
    "Record",
    "Saved",
    "Settings",
    "all_labs",
    "all_saved",
    "bring_up",
    "calibrate",
    "changed_links",
    "checked_name",
    "cut_links",
    "dead_links",
    "delete",
    "disk_bytes",
    "down",
    "draw_next",
    "exclusive",
    "flush",
    "fork",
    "future_lab",
    "heal",
    "keep",
    "kill",
    "link_carrier",
    "losing_all",
    "next_fork",
    "open_lab",
    "other_ways",
    "outages_in_words",
    "partition",
    "pause",
    "plan_now",
    "replace_settings",
    "require_parts",
    "reshape",
    "restart",
    "restore",
    "restore_links",
    "resume",
    "running",
    "save",
    "saved_named",
    "set_back",
    "set_for_experiment",
    "set_link_up",
    "set_links_up",
    "storm_in_words",
    "storms",
    "up",
    "update_settings",
    "used_links",
    "whole_links",
    "whole_paths",
]
