"""What the users of a board's cluster rely on: its applications are there, Services let everybody in, each server
answers from everywhere, names resolve in pods, and kubectl gets into the pods of each node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from minigts.arena.boards import APPS, ClusterApp
from minigts.arena.expectations import Complaint
from minigts.errors import MinigtsError
from minigts.foreign import parser_text
from minigts.lab import Lab
from minigts.overlays import Endpoint, joined_overlay

ASK_S = 120.0
"""The longest, in the lab's time, that a host may take to say what it sees."""
HEAL_STEP_S = 5.0
"""How long the lab is left alone between two looks at a cluster that is to become as it was."""
_SERVER = "kubernetes"
_SERVER_ADDRESS, _SERVER_PORT = "172.30.0.1", 443
_NAME_SERVER = "172.30.0.10"
_ZONE = "default.svc.cluster.local"
_NODE = re.compile(r"node ([a-z0-9-]{1,40}) True")
_POD = re.compile(r"pod ([a-z0-9-]{1,40}) ([a-z0-9-]{1,40}) (172\.31\.\d{1,3}\.\d{1,3}) True")
_LINE = re.compile(r"(open|name|enter) ([a-z0-9-]{1,40}) ([0-9.]{1,40}|none)")
_SEEN = r"""
pki=/etc/kubernetes/pki
ask() {
  curl -sf -m 10 --cacert "$pki/ca.crt" --cert "$pki/apiserver-kubelet-client.crt" \
    --key "$pki/apiserver-kubelet-client.key" "https://$SERVER:6443/api/v1/$@"
}
ready='(first(.status.conditions[]? | select(.type == "Ready").status) // "Unknown")'
ask nodes | jq -r ".items[] | \"node \(.metadata.name) \($ready)\""
pods=$(ask pods | jq '.items[] | select(.metadata.deletionTimestamp == null)')
echo "$pods" | jq -r "select(.metadata.namespace == \"default\") |
  \"pod \(.metadata.labels.app) \(.spec.nodeName) \(.status.podIP) \($ready)\""
echo "$pods" | jq -r 'select(.metadata.labels.app == "measure") | "\(.spec.nodeName) \(.metadata.name)"' | {
  while read -r node pod; do
    said=none
    ! ask "nodes/$node/proxy/run/minigts/$pod/measure?cmd=sh&cmd=-c&cmd=:" -X POST >/dev/null || said=1
    echo "enter $node $said"
  done
}
"""
"""What kubectl would show and do, by the API server, to which kubectl takes longer: nodes, pods, and whether a command
runs in a pod of each node."""
_ASK = f"""
asked() {{ if curl -sk -m 4 -o /dev/null "https://$2:$3/livez"; then echo "open $1 1"; else echo "open $1 none"; fi; }}
opened() {{ if nc -z -w 2 "$2" "$3" >/dev/null 2>&1; then echo "open $1 1"; else echo "open $1 none"; fi; }}
named() {{
  found=$(dig +short +tries=2 +time=2 @{_NAME_SERVER} "$1.{_ZONE}" 2>/dev/null | head -n 1)
  echo "name $1 ${{found:-none}}"
}}
"""


@dataclass(frozen=True)
class _AppServer:
    """A ready pod of an application."""

    app: ClusterApp
    node: str
    address: str

    @property
    def name(self) -> str:
        return f"{self.app.name}-{self.node}"


def equip(lab: Lab, manifest: str) -> None:
    """Apply the manifest, and wait until the applications are there. Raises MinigtsError when they do not come."""
    waits = "\n".join(f"k rollout status deployment/{app.name} --timeout 110s >/dev/null" for app in APPS)
    kubectl = 'k() { kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"; }'
    argv = ("sh", "-c", f"set -e\n{kubectl}\nk apply --filename - >/dev/null\n{waits}")
    lab.provider.run(lab.plan.hosts[0].name, argv, timeout_s=2 * ASK_S, stdin=manifest.encode())


def heal(lab: Lab, limit_s: float) -> None:
    """Let the lab's time pass until nobody has anything to complain of in the cluster, or the limit is over."""
    until_s = lab.provider.now_s() + limit_s
    while cluster_complaints(lab) and (now_s := lab.provider.now_s()) < until_s:
        lab.provider.sleep_until(now_s + HEAL_STEP_S)


def cluster_complaints(lab: Lab) -> tuple[Complaint, ...]:
    """All that does not hold now, of the cluster alone."""
    hosts = [host.name for host in lab.plan.hosts]
    plane = hosts[0]
    seen = _lines(lab, plane, _SEEN, ("env", f"SERVER={lab.plan.own_address(plane)}"))
    servers = list(_servers(seen))
    ready = {match[1] for line in seen if (match := _NODE.fullmatch(line))}
    entered = _said(seen)
    joined = joined_overlay(lab)
    if joined is None:
        raise MinigtsError(f"lab {lab.name} is no cluster any more")
    ends = joined.endpoints()
    with lab.provider.together() as pool:
        views = [(host, inside) for host in hosts for inside in (False, True)]
        said = pool.all([partial(_view, lab, host, ends if inside else {}, servers) for host, inside in views])
    found = [
        *(Complaint(what="node", source=plane, target=host) for host in hosts if host not in ready),
        *(Complaint(what="enter", source=plane, target=host) for host in hosts if entered.get(("enter", host)) != "1"),
    ]
    for app in APPS:
        there = sum(each.app == app for each in servers)
        if there != len(hosts):
            found.append(Complaint(what="servers", source=plane, target=app.name, figure=there))
    for (host, inside), view in zip(views, said, strict=True):
        found += _of_view(host, view, servers, inside=inside)
    return tuple(found)


def _servers(lines: Sequence[str]) -> Iterator[_AppServer]:
    by_name = {app.name: app for app in APPS}
    for line in lines:
        if (found := _POD.fullmatch(line)) and found[1] in by_name:
            yield _AppServer(by_name[found[1]], found[2], found[3])


def _view(lab: Lab, host: str, ends: Mapping[str, Endpoint], servers: Sequence[_AppServer]) -> Mapping[_Told, str]:
    """What is reached from a host, or from its measuring pod, and which names are known there."""
    calls = [
        f"asked {_SERVER} {_SERVER_ADDRESS} {_SERVER_PORT}",
        *(f"opened {app.name} {app.address} {app.service_port}" for app in APPS),
        *(f"opened {each.name} {each.address} {each.app.port}" for each in servers),
        *(f"named {name}" for name in (_SERVER, *(app.name for app in APPS)) if ends),
    ]
    script = "".join((_ASK, *(f"{call} &\n" for call in calls), "wait\n"))
    return _said(_lines(lab, host, script, ends[host].network if ends else ()))


_Told = tuple[str, str]
"""What was asked, and of whom."""


def _said(lines: Sequence[str]) -> Mapping[_Told, str]:
    return {(found[1], found[2]): found[3] for line in lines if (found := _LINE.fullmatch(line))}


def _lines(lab: Lab, host: str, script: str, entry: Sequence[str] = ()) -> list[str]:
    argv = (*entry, "sh", "-c", script)
    return parser_text(lab.provider.run(host, argv, timeout_s=ASK_S, check=False).stdout).splitlines()


def _of_view(
    host: str, said: Mapping[_Told, str], servers: Sequence[_AppServer], *, inside: bool
) -> Iterator[Complaint]:
    addresses = {_SERVER: _SERVER_ADDRESS, **{app.name: app.address for app in APPS}}
    for name, address in addresses.items():
        if said.get(("open", name)) != "1":
            yield Complaint(what="site", source=host, target=name, inside=inside)
        if inside and said.get(("name", name)) != address:
            yield Complaint(what="lookup", source=host, target=name, inside=inside)
    for each in servers:
        if said.get(("open", each.name)) != "1":
            yield Complaint(what="server", source=host, target=each.name, inside=inside)
