"""Makes a cluster's Services as many as asked for, and says what that means for connections to them: one line of JSON.

services.py [--connections N] [--port PORT] NUMBER LABEL

On the control plane's host. Each Service is one port of the pod with `app: LABEL`; those that are too many are deleted
first. `made` is how many were made now, and `all_answer_s` the seconds from the first of them until each has answered.
Then, of this host's kube-proxy:

    rules           all its rules
    rules_each      how many more than before, for each Service made; 0 if none was
    compared        with how many of them a packet to the last Service is compared until one fits it
    one_by_one      1 if the Services' rules stand in a list, 0 if in a map of the kernel
    syncs, sync_ms  how often it set rules meanwhile, and the mean of how long that took
    proxy_cpu_s     its processor time meanwhile, with the programs that it starts
    connect_ms      median time to open a connection to the last Service of the list
    slowest_ms      the longest of these
    foremost_ms     median to the first Service of the list
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import Any

CREDENTIALS = "/etc/kubernetes/admin.conf"
SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
OURS = "?labelSelector=many%3Dyes"
PROXY = "http://127.0.0.1:10249"
PATIENCE_S = 3600.0
TRY_S = 0.3
FIRST_BLOCK = 16


class Api:
    """The API server, by the administrator's credentials."""

    def __init__(self) -> None:
        config = json.loads(
            output("kubectl", "--kubeconfig", CREDENTIALS, "config", "view", "--raw", "--output", "json")
        )
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as file:
            for part in ("client-certificate-data", "client-key-data"):
                file.write(base64.b64decode(user[part]))
            file.flush()
            context.load_cert_chain(file.name)
        self._connection = http.client.HTTPSConnection(cluster["server"].removeprefix("https://"), context=context)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise SystemExit(f"{method} {path}: {answer.status} {said.decode()}")
        return json.loads(said)


def output(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def service(number: int, label: str, port: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"many-{number}", "labels": {"many": "yes"}},
        "spec": {"clusterIP": address_of(number), "selector": {"app": label}, "ports": [{"port": port}]},
    }


def address_of(number: int) -> str:
    """Of Service `number` of ours, from 0: beyond the addresses that a topology's manifests choose."""
    return f"172.30.{FIRST_BLOCK + number // 250}.{number % 250 + 1}"


def opened_s(address: str, port: int) -> float:
    """Seconds until a connection was open."""
    began = time.monotonic()
    with socket.create_connection((address, port), timeout=TRY_S):
        return time.monotonic() - began


def wait_until_answered(address: str, port: int, until: float) -> None:
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            opened_s(address, port)
            return
        time.sleep(0.05)
    raise SystemExit(f"the Service {address} has not answered in {PATIENCE_S:g} s")


def rules_of_iptables(text: str) -> tuple[int, list[str]]:
    """All rules of kube-proxy's in what iptables-save prints, and the Services' addresses in the order of their list.

    -A KUBE-SERVICES -d 172.30.16.1/32 -p tcp -m comment --comment "default/many-0 cluster IP" -m tcp … -j KUBE-SVC-…
    """
    listed = re.findall(r"^-A KUBE-SERVICES .*?-d ([0-9.]+)/32 .*-j KUBE-SVC-", text, re.MULTILINE)
    return len(re.findall(r"^-A KUBE-", text, re.MULTILINE)), listed


def rules_of_nftables(text: str) -> tuple[int, int]:
    """All rules in what `nft --json list table` prints, and those of the chain that each packet to a Service passes."""
    rules = [each["rule"] for each in json.loads(text)["nftables"] if "rule" in each]
    return len(rules), sum(rule["chain"] == "services" for rule in rules)


def by_iptables() -> bool:
    return bool(urllib.request.urlopen(f"{PROXY}/proxyMode").read() == b"iptables")


def rules() -> tuple[dict[str, float], list[str]]:
    """What stands in the kernel, and the addresses of our Services, in the order of their list where there is one."""
    if by_iptables():
        count, listed = rules_of_iptables(output("iptables-save", "--table", "nat"))
        ours = [address for address in listed if int(address.split(".")[2]) >= FIRST_BLOCK]
        return {"rules": count, "compared": listed.index(ours[-1]) + 1 if ours else 0, "one_by_one": 1}, ours
    count, passed = rules_of_nftables(output("nft", "--json", "list", "table", "ip", "kube-proxy"))
    return {"rules": count, "compared": passed, "one_by_one": 0}, []


def proxy_state() -> dict[str, float]:
    """How often kube-proxy has set rules, in how many seconds, and its processor seconds, since it began."""
    text = urllib.request.urlopen(f"{PROXY}/metrics").read().decode()

    def metric(kind: str) -> float:
        pattern = rf"^kubeproxy_sync_proxy_rules_duration_seconds_{kind}(?:{{.*}})? (\S+)$"
        return sum(map(float, re.findall(pattern, text, re.MULTILINE)))

    fields = Path(f"/proc/{Path('/run/minigts/daemons/kube-proxy.pid').read_text().strip()}/stat").read_text()
    ticks = fields.rpartition(") ")[2].split()[11:15]
    return {
        "syncs": metric("count"),
        "sync_s": metric("sum"),
        "proxy_cpu_s": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
    }


def made_to_be(api: Api, number: int, label: str, port: int) -> int:
    """Have `number` Services; return how many are new, each of which has answered."""
    until = time.monotonic() + PATIENCE_S
    present = {item["metadata"]["name"] for item in api.ask("GET", SERVICES + OURS)["items"]}
    for name in sorted(present - {f"many-{each}" for each in range(number)}):
        api.ask("DELETE", f"{SERVICES}/{name}")
    while len(api.ask("GET", SLICES + OURS)["items"]) > number:
        time.sleep(1)
    new = [each for each in range(number) if f"many-{each}" not in present]
    for each in new:
        api.ask("POST", SERVICES, service(each, label, port))
    for each in new:
        wait_until_answered(address_of(each), port, until)
    return len(new)


parser = argparse.ArgumentParser()
parser.add_argument("--connections", type=int, default=20)
parser.add_argument("--port", type=int, default=12865)
parser.add_argument("number", type=int)
parser.add_argument("label")

if __name__ == "__main__":
    options = parser.parse_args()
    before_rules, before, began = rules()[0]["rules"], proxy_state(), time.monotonic()
    made = made_to_be(Api(), options.number, options.label, options.port)
    all_answer_s = time.monotonic() - began
    after, (found, listed) = proxy_state(), rules()
    ends = [listed[0], listed[-1]] if listed else [address_of(0), address_of(options.number - 1)]
    times_ms = [[opened_s(end, options.port) * 1000 for _ in range(options.connections)] for end in ends]
    syncs = after["syncs"] - before["syncs"]
    found |= {
        "made": made,
        "all_answer_s": all_answer_s,
        "rules_each": (found["rules"] - before_rules) / made if made else 0,
        "syncs": syncs,
        "sync_ms": (after["sync_s"] - before["sync_s"]) * 1000 / max(1, syncs),
        "proxy_cpu_s": after["proxy_cpu_s"] - before["proxy_cpu_s"],
        "foremost_ms": median(times_ms[0]),
        "connect_ms": median(times_ms[1]),
        "slowest_ms": max(times_ms[1]),
    }
    print(json.dumps(found))  # noqa: T201
