"""lease.py STORE SECONDS: starts flanneld, ends it some seconds later as a power cut would, and so on; what it has
leased runs out meanwhile. Prints a line of JSON when flanneld has written down its block, and one when it has ended.

A lease of flanneld's is one of etcd's for 24 hours, which then deletes the block's key. Here it is told to do the same
earlier (`lease/revoke`)."""

import base64
import http.client
import json
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

BLOCK, PREFIX = Path("/run/lease.env"), "/coreos.com/network/subnets/"
LOG, PORT, LOOK_S = Path("/var/log/flanneld.log"), 2379, 0.02
FLAGS = ("-iface=underlay", "-ip-masq=false", "-iptables-forward-rules=false", f"-subnet-file={BLOCK}")


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps({"at": time.monotonic_ns(), **what}) + "\n")
    sys.stdout.flush()


def asked(store: str, path: str, **what: object) -> dict:
    """What etcd answers; it is asked until it does."""
    while True:
        try:
            connection = http.client.HTTPConnection(store, PORT, timeout=5)
            connection.request("POST", f"/v3/{path}", json.dumps(what))
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException):
            time.sleep(0.5)


def lease_of(store: str, block: str, own: str) -> str | None:
    """The number of this host's lease on the block; None if it is another host's by now."""
    key = base64.b64encode((PREFIX + block.replace("/", "-")).encode()).decode()
    for found in asked(store, "kv/range", key=key).get("kvs", []):
        if json.loads(base64.b64decode(found["value"]))["PublicIP"] == own:
            return found["lease"]
    return None


def block() -> str:
    """The block that flanneld has written down, such as 172.31.1.0/24."""
    for line in BLOCK.read_text().splitlines() if BLOCK.exists() else ():
        if line.startswith("FLANNEL_SUBNET="):
            return line.partition("=")[2].replace(".1/", ".0/")
    return ""


def ended(flanneld: subprocess.Popen, within_s: float) -> bool:
    try:
        flanneld.wait(within_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def main() -> None:
    store, until, chance = sys.argv[1], time.monotonic() + float(sys.argv[2]), random.SystemRandom()
    own = socket.gethostbyname(socket.gethostname())
    (program,) = Path("/var/lib/minigts/programs").glob("*/flanneld")
    argv = [str(program), f"-etcd-endpoints=http://{store}:{PORT}", *FLAGS]
    while time.monotonic() < until:
        BLOCK.unlink(missing_ok=True)  # it is in /run, which a boot empties
        with LOG.open("ab") as log, subprocess.Popen(argv, stdout=log, stderr=log) as flanneld:
            while not block() and not ended(flanneld, LOOK_S):
                pass
            if not block():
                time.sleep(chance.uniform(0.2, 0.6))
                continue
            held = block()
            tell(op="hold", key=held)
            lease = lease_of(store, held, own)
            ended(flanneld, chance.uniform(1, 4))
            flanneld.kill()
        tell(answer="ok")
        if lease is not None:
            threading.Timer(chance.uniform(0, 3), asked, (store, "lease/revoke"), {"ID": lease}).start()
        time.sleep(chance.uniform(0, 3))


main()
