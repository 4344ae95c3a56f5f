"""A checkout of PyPA's advisory database answers as OSV does, on a loopback address, while a command runs: so that
pip-audit needs no network.

    python tests/advisories.py CHECKOUT COMMAND…    URL in the command stands for the address
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from packaging.version import InvalidVersion, Version


def normal(name: str) -> str:
    """PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read(checkout: Path) -> dict[str, list[dict[str, Any]]]:
    """Every advisory by the package's name. Raises ValueError where there is none."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in (checkout / "vulns").glob("*/*.yaml"):
        advisory = yaml.load(file.read_bytes(), yaml.CBaseLoader)
        found.setdefault(normal(file.parent.name), []).append(advisory)
    if not found:
        raise ValueError(f"{checkout}: is no checkout of pypa/advisory-database: it has no vulns/*/*.yaml")
    return found


def concerns(advisory: dict[str, Any], name: str, version: str) -> bool:
    """Whether it is of this version: one that it lists, or one of its ranges (the OSV schema, "Evaluation")."""
    if "withdrawn" in advisory:
        return False
    own = [each for each in advisory["affected"] if normal(each["package"]["name"]) == normal(name)]
    return any(
        version in each.get("versions", ()) or any(_within(r, version) for r in each.get("ranges", ())) for each in own
    )


def _within(span: dict[str, Any], version: str) -> bool:
    if span["type"] != "ECOSYSTEM":
        return False
    inside = False
    for event in span["events"]:
        ((kind, bound),) = event.items()
        try:
            reached = bound == "0" or Version(version) >= Version(bound)
            beyond = Version(version) > Version(bound)
        except InvalidVersion:
            continue
        if kind == "introduced" and reached:
            inside = True
        elif (kind == "fixed" and reached) or (kind == "last_affected" and beyond):
            inside = False
    return inside


def main() -> None:
    known = read(Path(sys.argv[1]))

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name, version = asked["package"]["name"], asked["version"]
            vulns = [each for each in known.get(normal(name), ()) if concerns(each, name, version)]
            answer = json.dumps({"vulns": vulns} if vulns else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1/query"
        code = subprocess.run([word.replace("URL", address) for word in sys.argv[2:]], check=False).returncode
        server.shutdown()
    raise SystemExit(code)


if __name__ == "__main__":
    main()
