"""How a command on a host has ended, as its agent says: `{"code": 0, "timeout": false}`. A host may say anything."""

from __future__ import annotations

from minigts.errors import HostFailed
from minigts.language import documents

_HIGHEST_CODE = 255
_BOUNDS = documents.Bounds(elements=10, bytes=1000)


def of(payload: bytes, host: str) -> tuple[int, bool]:
    """The exit code, and whether the command was ended because its time was up. Raises HostFailed."""
    try:
        said = documents.document(payload, _BOUNDS)
        code, timeout = said["code"], said.get("timeout", False)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise HostFailed(f"host {host} does not say how the command has ended") from error
    if type(code) is not int or not 0 <= code <= _HIGHEST_CODE or type(timeout) is not bool:
        raise HostFailed(f"host {host} says that the command has ended in a way that there is not")
    return code, timeout
