"""Switch machines: what makes one, the same on every provider. Their scripts are provision/switch.sh's functions."""

from __future__ import annotations

import shlex
from typing import Literal

from minigts import paths
from minigts.topology.plan import Switch

Step = Literal["make_switch", "ask_controller"]
SCRIPTS = ("lib.sh", "overlays/openvswitch.sh", "switch.sh")


def script(switch: Switch, step: Step) -> str:
    """For `bash` as root on a switch whose links have their names: one of the steps that provision/switch.sh describes.

    All in one, so that nothing has to be copied to the machine first. A second run changes nothing.
    """
    settings = {
        "MINIGTS_PORTS": " ".join(port.name for port in switch.ports),
        "MINIGTS_ADDRESS": f"{switch.address}/{switch.prefix}",
        "MINIGTS_MTU": str(switch.ports[0].mtu),
        "MINIGTS_CONTROLLER": switch.controller or "",
    }
    lines = ["set -o pipefail", *(f"{key}={shlex.quote(value)}" for key, value in settings.items())]
    parts = [(paths.project_root() / "provision" / name).read_text() for name in SCRIPTS]
    return "\n".join([*lines, *parts, step, ""])
