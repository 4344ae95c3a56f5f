"""The part of the baseline for a cluster of Kubernetes: what kubectl shows beside what the ticket says that the cluster
should carry, and the programs, filters, routes and interfaces of each node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from minigts.arena.play import Play
from minigts.arena.scores import ArenaAnswer, NamedFault

SIGN = "The cluster should carry this (kubectl works on "
"""What a ticket says that is about a cluster."""
_FILE = "/root/carried.yaml"
_COLUMNS = "--no-headers --output custom-columns="
_OBJECTS = "; echo ==; ".join(
    (
        f"kubectl get nodes {_COLUMNS}N:.metadata.name,U:.spec.unschedulable,B:.spec.podCIDR",
        f"kubectl get deployments --all-namespaces {_COLUMNS}"
        "N:.metadata.name,R:.spec.replicas,I:.spec.template.spec.containers[0].image,"
        "P:.spec.template.spec.containers[0].readinessProbe.tcpSocket.port,"
        "M:.spec.template.spec.containers[0].resources.requests.memory,C:.spec.template.spec.containers[0].command",
        f"kubectl get services --all-namespaces {_COLUMNS}"
        "N:.metadata.name,P:.spec.ports[0].targetPort,S:.spec.selector",
        f"kubectl get networkpolicies {_COLUMNS}N:.metadata.name,A:.spec.podSelector.matchLabels.app",
        "kubectl get configmap coredns --namespace kube-system --output 'jsonpath={.data.Corefile}'",
    )
)
_NODE = (
    "ps -e -o pid,stat,args; echo ==; ip -o link show; echo ==; ip -o route show; echo ==;"
    " nft list table inet site 2>/dev/null; echo ==; for file in /run/netns/cni-*; do"
    ' nsenter --net="$file" ip route show default | grep -q . || echo "$file"; done'
)
_SYSTEM = "kubectl --namespace kube-system"
_CONTROL: Mapping[str, tuple[str, str]] = {
    "kube-scheduler": (
        "scheduler-dead",
        "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf"
        " --authorization-kubeconfig=/etc/kubernetes/scheduler.conf --bind-address=127.0.0.1"
        " --kubeconfig=/etc/kubernetes/scheduler.conf --leader-elect=true",
    ),
    "kube-controller-manager": (
        "controllers-dead",
        "--authentication-kubeconfig=/etc/kubernetes/controller-manager.conf"
        " --authorization-kubeconfig=/etc/kubernetes/controller-manager.conf --bind-address=127.0.0.1"
        " --client-ca-file=/etc/kubernetes/pki/ca.crt --cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt"
        " --cluster-signing-key-file=/etc/kubernetes/pki/ca.key '--controllers=*,bootstrapsigner,tokencleaner'"
        " --kubeconfig=/etc/kubernetes/controller-manager.conf --leader-elect=true"
        " --requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt"
        " --root-ca-file=/etc/kubernetes/pki/ca.crt"
        " --service-account-private-key-file=/etc/kubernetes/pki/sa.key --service-cluster-ip-range=172.30.0.0/16"
        " --use-service-account-credentials=true",
    ),
}
"""Programs of the control plane, with the options that kubeadm gives them."""
_FILTERS = (
    (r"tcp dport 6443 reject", "server-refused"),
    (r"tcp dport 10250 drop", "kubelet-filtered"),
    (r"udp dport 8472 drop", "flannel-filtered"),
)


@dataclass(frozen=True)
class _Found:
    kind: str
    where: str
    on: str
    """The host on which it is mended."""
    mend: str


@dataclass
class _Seen:
    """What the cluster's objects are, and what each node shows, in parts."""

    plane: str
    carried: str
    objects: list[str]
    nodes: dict[str, list[str]] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)

    @property
    def replace(self) -> str:
        return f"kubectl replace --filename {_FILE}"


def decide_cluster(play: Play, hosts: Mapping[str, object]) -> ArenaAnswer:
    """Play an incident of a cluster."""
    told = play.record.ticket
    plane = told.partition(SIGN)[2].partition(",")[0]
    carried = told.partition(SIGN)[2].partition(":\n\n")[2]
    play.call("write_file", {"host": plane, "path": _FILE, "text": carried})
    seen = _Seen(plane, carried, _parts(play, plane, _OBJECTS))
    for name in hosts:
        seen.nodes[name] = _parts(play, name, _NODE)
    findings = list(_findings(seen))
    for each in findings:
        play.call("run", {"host": each.on, "command": each.mend, "seconds": 100})
    return ArenaAnswer(faults=tuple(NamedFault(what=each.kind, where=each.where) for each in findings))


def _parts(play: Play, host: str, command: str) -> list[str]:
    parts = play.call("run", {"host": host, "command": command, "seconds": 60}).split("==\n")
    return [*parts, *[""] * 5][:5]


def _findings(seen: _Seen) -> Iterator[_Found]:
    nodes, deployments, services, policies, zone = seen.objects
    for line in nodes.splitlines():
        name, unschedulable, block, *_ = [*line.split(), "", "", ""]
        seen.blocks[name] = block
        if unschedulable == "true":
            yield _Found("drained", name, seen.plane, f"kubectl uncordon {name}")
    for line in deployments.splitlines():
        yield from _of_deployment(seen, *[*line.split(None, 5), *[""] * 6][:6])
    for line in services.splitlines():
        yield from _of_service(seen, *[*line.split(None, 2), *[""] * 3][:3])
    for line in policies.splitlines():
        name, app, *_ = [*line.split(), "", ""]
        if f"name: {app}}}" in seen.carried:
            yield _Found("closed-by-policy", f"deployment/{app}", seen.plane, f"kubectl delete networkpolicy {name}")
    if (found := re.search(r"kubernetes cluster\.(\w+) ", zone)) and found[1] != "local":
        again = f"{_SYSTEM} rollout restart deployment/coredns; {_SYSTEM} rollout status deployment/coredns"
        edit = f"{_SYSTEM} get configmap coredns --output yaml | sed 's/cluster[.]{found[1]}/cluster.local/g'"
        yield _Found("wrong-zone", "configmap/coredns", seen.plane, f"{edit} | kubectl replace --filename -; {again}")
    for host in seen.nodes:
        yield from _of_programs(seen, host)
        yield from _of_network(seen, host)


def _of_deployment(
    seen: _Seen, name: str, replicas: str, image: str, probe: str, memory: str, command: str
) -> Iterator[_Found]:
    where = f"deployment/{name}"
    if name == "coredns" and replicas == "0":
        yield _Found("no-replicas", where, seen.plane, f"{_SYSTEM} scale {where} --replicas 2")
    carried = re.search(rf"- name: {name}\n +image: (\S+)\n.*\n.*port: (\d+)", seen.carried)
    if carried is None:
        return
    for wrong, kind in (
        (replicas == "0", "no-replicas"),
        (image != carried[1], "wrong-image"),
        (probe != carried[2], "failing-probe"),
        (command.strip() != "<none>", "crash-loop"),
        (memory != "<none>", "no-room"),
    ):
        if wrong:
            yield _Found(kind, where, seen.plane, seen.replace)


def _of_service(seen: _Seen, name: str, port: str, selector: str) -> Iterator[_Found]:
    where = f"service/{name}"
    mend, wanted = seen.replace, re.search(rf"selector: {{app: {name}}}\n.*\n.*targetPort: (\d+)", seen.carried)
    right = wanted[1] if wanted else "53"
    if name == "kube-dns":
        patch = (
            '[{"op": "replace", "path": "/spec/selector", "value": {"k8s-app": "kube-dns"}},'
            ' {"op": "replace", "path": "/spec/ports/0/targetPort", "value": 53}]'
        )
        mend = f"{_SYSTEM} patch {where} --type json -p '{patch}'"
    elif wanted is None:
        return
    if port != right:
        yield _Found("service-port", where, seen.plane, mend)
    if selector.count(":") != 1:
        yield _Found("service-selector", where, seen.plane, mend)


def _of_programs(seen: _Seen, host: str) -> Iterator[_Found]:
    shown = seen.nodes[host][0]
    if found := re.search(r"^ *(\d+) +T\S* +containerd ", shown, re.MULTILINE):
        yield _Found("containerd-stopped", host, host, f"kill -CONT {found[1]}")
    for program, (kind, options) in _CONTROL.items() if host == seen.plane else ():
        if not _command(shown, program):
            yield _Found(kind, host, host, _started(program, f"{program} {options}"))
    for program, kind in (("kubelet", "kubelet-dead"), ("kube-proxy", "proxy-dead")):
        if _command(shown, program):
            continue
        for other, parts in seen.nodes.items():
            if command := _command(parts[0], program):
                command = re.sub(rf"(--hostname-override) {other}\b", rf"\1 {host}", command)
                own = f"$(getent hosts {host} | cut -d' ' -f1)"
                command = re.sub(r"(--node-ip) \S+", rf"\1 {own}", command)
                yield _Found(kind, host, host, _started(program, command))
                break


def _of_network(seen: _Seen, host: str) -> Iterator[_Found]:
    _, links, routes, filters, lost = seen.nodes[host]
    for pattern, kind in _FILTERS:
        if re.search(pattern, filters):
            yield _Found(kind, host, host, "nft delete table inet site")
    for device in re.findall(r"^\d+: (veth[^@:]*)\S+ <(?!(?:[^>]*,)?UP[,>])", links, re.MULTILINE):
        yield _Found("pod-off", host, host, f"ip link set {device} up")
    own = seen.blocks.get(host, "").removesuffix("0/24")
    for file in re.findall(r"^/run/netns/\S+$", lost, re.MULTILINE):
        yield _Found("pod-no-gateway", host, host, f"nsenter --net={file} ip route add default via {own}1")
    others = {name: block for name, block in seen.blocks.items() if name != host}
    if re.search(r"^\d+: flannel\.1: <(?!(?:[^>]*,)?UP[,>])", links, re.MULTILINE):
        again = "; ".join(_way(seen, name, block) for name, block in others.items())
        yield _Found("flannel-off", host, host, f"ip link set flannel.1 up; {again}")
        return
    for name, block in others.items():
        if not re.search(rf"^{re.escape(block)} ", routes, re.MULTILINE):
            yield _Found("no-way-to-pods", host, host, _way(seen, name, block))


def _way(seen: _Seen, other: str, block: str) -> str:
    """The commands for a route to another node's pods, as flannel has it."""
    base = block.partition("/")[0]
    found = re.search(r"^\d+: flannel\.1: .*link/ether (\S+)", seen.nodes[other][1], re.MULTILINE)
    near = f"; ip neighbour replace {base} lladdr {found[1]} dev flannel.1 nud permanent" if found else ""
    return f"ip route replace {block} via {base} dev flannel.1 onlink{near}"


def _command(shown: str, program: str) -> str:
    found = re.search(rf"^ *\d+ +[^TZ\s]\S* +({program} --.*)$", shown, re.MULTILINE)
    return found[1] if found else ""


def _started(program: str, command: str) -> str:
    pid = f"/run/minigts/daemons/{program}.pid"
    return f"GODEBUG=gcstoptheworld=2 setsid {command} >>/var/log/{program}.log 2>&1 </dev/null & echo $! >{pid}"
