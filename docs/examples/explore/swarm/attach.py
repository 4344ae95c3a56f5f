"""attach.py SECONDS: takes this host's container out of the overlay network and puts it in again, every few seconds.
Prints a line of JSON when it asks the engine, and one when it is answered."""

import http.client
import json
import random
import socket
import sys
import time

CONTAINER, NETWORK, PATIENCE_S = "measure", "measure", 120


class Engine(http.client.HTTPConnection):
    """A connection to the Docker engine of this host."""

    def __init__(self) -> None:
        super().__init__("docker", timeout=PATIENCE_S)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect("/run/docker.sock")


def ask(method: str, path: str, **what: object) -> tuple[int, str]:
    engine = Engine()
    engine.request(method, path, json.dumps(what), {"Content-Type": "application/json"})
    answer = engine.getresponse()
    return answer.status, answer.read().decode()


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps({"at": time.monotonic_ns(), **what}) + "\n")
    sys.stdout.flush()


def timed(op: str, path: str, **what: object) -> bool:
    tell(op=op)
    status, said = ask("POST", path, **what)
    tell(answer="ok" if status < 300 else "fail", said=said.strip())
    return status < 300


def main() -> None:
    chance, until = random.SystemRandom(), time.monotonic() + float(sys.argv[1])
    _, said = ask("GET", f"/containers/{CONTAINER}/json")
    address = json.loads(said)["NetworkSettings"]["Networks"][NETWORK]["IPAddress"]
    with_address = {"IPAMConfig": {"IPv4Address": address}}
    while time.monotonic() < until:
        time.sleep(chance.uniform(0, 6))
        timed("disconnect", f"/networks/{NETWORK}/disconnect", Container=CONTAINER)
        time.sleep(chance.uniform(0, 2))
        while not timed("connect", f"/networks/{NETWORK}/connect", Container=CONTAINER, EndpointConfig=with_address):
            time.sleep(1)


main()
