"""The kinds of faults of a cluster of Kubernetes: of its objects, of the programs of a node, and of the network between
pods. For boards with a manifest, whose hosts have flannel's VXLAN.

A fault of an object is made on the control plane, and an answer names the object, as `service/web`; that of a node is
named by its host. Beside the variables of `lessons.break_kinds` these have `name` and `space` of an object, `node`, and
`server`, the control plane's address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from minigts.arena.boards import APPS
from minigts.lessons.break_kinds import Kind, filter_script
from minigts.lessons.breaks import FaultPlace
from minigts.topology.plan.plan import Plan

NOTHING = 8081
"""A port on which no pod listens."""
NODES = 3
"""How many nodes a board has, and so how many servers an application."""
_DNS = "kube-system"
_KUBECTL = 'k() { kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 30s --namespace "$space" "$@"; }\n'
_DAEMON = """
file=/run/minigts/daemons/$program.pid
pid=$(cat "$file")
command=$(tr '\\0' ' ' <"/proc/$pid/cmdline")
"""
_ENDED = f"""{_DAEMON}kill "$pid"
while [ -d "/proc/$pid" ]; do sleep 0.05; done
"""
_START_AGAIN = (
    'echo "GODEBUG=gcstoptheworld=2 setsid $command >>/var/log/$program.log 2>&1 </dev/null &"\n'
    'echo "echo \\$! >$file"\n'
)
"""As the overlay has started it (provision/overlays/daemons.sh)."""
_ADDRESS = """
address=$(kubectl --kubeconfig /etc/kubernetes/kubelet.conf get pods --selector "app=web" \\
  --field-selector "spec.nodeName=$host" --output 'jsonpath={.items[0].status.podIP}')
[ -n "$address" ]
"""
"""Of the pod of the application `web` on this node."""


def _of_object(name: str, says: str, do: str, shows: str) -> Kind:
    return Kind(name, says, "interface", f"{_KUBECTL}{do}", f"{_KUBECTL}{shows}")


def _changed(kind: str, change: str) -> str:
    """A change of an object, which is undone by its specification of before."""
    return (
        f"before=$(k get {kind} \"$name\" --output 'jsonpath={{.spec}}')\n{change} >/dev/null\n"
        f'echo "kubectl --namespace $space patch {kind} $name --type json '
        f'-p \'[{{\\"op\\": \\"replace\\", \\"path\\": \\"/spec\\", \\"value\\": $before}}]\'"\n'
    )


def _patched(kind: str, operation: str, path: str, value: str) -> str:
    patch = f'[{{"op": "{operation}", "path": "{path}", "value": {value}}}]'
    return _changed(kind, f"k patch {kind} \"$name\" --type json -p '{patch}'")


_CONTAINER = "/spec/template/spec/containers/0"
_NOT_ALL_READY = f'[ "$(k get deployment "$name" --output \'jsonpath={{.status.readyReplicas}}\')" != {NODES} ]'
_ENDPOINTS = (
    '[ -z "$(k get endpointslices --selector "kubernetes.io/service-name=$name" '
    "--output 'jsonpath={.items[*].endpoints[*].addresses}')\" ]"
)


def _zone(before: str, now: str) -> str:
    """Gives CoreDNS another zone, and starts it again."""
    return (
        f"{{ k get configmap coredns --output yaml | sed 's/cluster[.]{before}/cluster.{now}/g' |\n"
        "  k replace --filename -\nk rollout restart deployment/coredns\n"
        "k rollout status deployment/coredns --timeout 90s; }"
    )


_OF_OBJECTS = (
    _of_object(
        "service-selector",
        "a Service selects pods that there are not",
        _patched("service", "add", "/spec/selector/version", '"v2"'),
        _ENDPOINTS,
    ),
    _of_object(
        "service-port",
        "a Service sends to a port of its pods on which nothing listens",
        _patched("service", "replace", "/spec/ports/0/targetPort", str(NOTHING)),
        f'[ "$(k get service "$name" --output \'jsonpath={{.spec.ports[0].targetPort}}\')" = {NOTHING} ]',
    ),
    _of_object(
        "no-replicas",
        "a Deployment is scaled to no pods at all",
        _patched("deployment", "replace", "/spec/replicas", "0"),
        '[ -z "$(k get deployment "$name" --output \'jsonpath={.status.readyReplicas}\')" ]',
    ),
    _of_object(
        "wrong-image",
        "a Deployment names an image that cannot be had",
        _patched("deployment", "replace", f"{_CONTAINER}/image", '"minigts/measure:v2"'),
        _NOT_ALL_READY,
    ),
    _of_object(
        "failing-probe",
        "a Deployment's readiness probe asks a port on which its pods do not listen",
        _patched("deployment", "replace", f"{_CONTAINER}/readinessProbe/tcpSocket/port", str(NOTHING)),
        _NOT_ALL_READY,
    ),
    _of_object(
        "crash-loop",
        "a Deployment's pods run a command that ends at once",
        _patched("deployment", "add", f"{_CONTAINER}/command", '["sh", "-c", "echo no configuration; exit 1"]'),
        _NOT_ALL_READY,
    ),
    _of_object(
        "no-room",
        "a Deployment's pods ask for more memory than any node has",
        _patched("deployment", "add", f"{_CONTAINER}/resources/requests", '{"memory": "64Gi"}'),
        _NOT_ALL_READY,
    ),
    _of_object(
        "closed-by-policy",
        "a NetworkPolicy lets nobody open a connection to a Deployment's pods",
        "k create --filename - >/dev/null <<END\n"
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: guard}\n"
        "spec: {podSelector: {matchLabels: {app: $name}}, policyTypes: [Ingress]}\nEND\n"
        "echo 'kubectl delete networkpolicy guard'\n",
        "[ \"$(k get networkpolicies --output 'jsonpath={.items[*].spec}')\" = "
        '"{\\"podSelector\\":{\\"matchLabels\\":{\\"app\\":\\"$name\\"}},\\"policyTypes\\":[\\"Ingress\\"]}" ]',
    ),
    _of_object(
        "wrong-zone",
        "CoreDNS serves another zone than the cluster's",
        f"{_zone('local', 'lan')} >/dev/null\n"
        f"cat <<'END'\n{_zone('lan', 'local').replace('k ', 'kubectl --namespace kube-system ')}\nEND\n",
        "! k get configmap coredns --output 'jsonpath={.data.Corefile}' | grep -q 'kubernetes cluster\\.local'",
    ),
    _of_object(
        "drained",
        "a node was drained, and takes no pods since",
        'k drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout 60s >/dev/null 2>&1\n'
        'echo "kubectl uncordon $node"\n',
        '[ "$(k get node "$node" --output \'jsonpath={.spec.unschedulable}\')" = true ]',
    ),
)
_OF_CONTROL = tuple(
    Kind(
        name,
        says,
        "interface",
        f"program={program}\n{_ENDED}{_KUBECTL}"
        f'k delete pods --selector "app=$name" --field-selector {lost} --wait=false >/dev/null\n{_START_AGAIN}',
        f"! curl -sk -m 3 -o /dev/null https://127.0.0.1:{port}/healthz",
    )
    for name, says, program, lost, port in (
        (
            "scheduler-dead",
            "the scheduler has ended, and new pods wait for a node",
            "kube-scheduler",
            "metadata.namespace=default",
            10259,
        ),
        (
            "controllers-dead",
            "the controllers have ended, and pods that are gone are not made again",
            "kube-controller-manager",
            "spec.nodeName=$node",
            10257,
        ),
    )
)
_OF_NODES = (
    Kind(
        "kubelet-dead",
        "a node's kubelet has ended",
        "interface",
        f"program=kubelet\n{_ENDED}{_START_AGAIN}",
        "! curl -s -m 3 -o /dev/null http://127.0.0.1:10248/healthz",
    ),
    Kind(
        "containerd-stopped",
        "a node's containerd is stopped: it is there, and does nothing",
        "interface",
        f'program=containerd\n{_DAEMON}kill -STOP "$pid"\necho "kill -CONT $pid"\n',
        'grep -q "^State:[[:blank:]]*T" "/proc/$(cat /run/minigts/daemons/containerd.pid)/status"',
    ),
    Kind(
        "proxy-dead",
        "a node's kube-proxy has ended, and its rules are gone",
        "interface",
        f"program=kube-proxy\n{_ENDED}iptables --table nat --flush KUBE-SERVICES\n{_START_AGAIN}",
        "! iptables --table nat --list-rules KUBE-SERVICES | grep -q KUBE-SVC",
    ),
    Kind(
        "server-refused",
        "a filter on a node refuses what it sends to the API server",
        "interface",
        filter_script("output", "tcp dport 6443 reject with tcp reset"),
        '! curl -sk -m 3 -o /dev/null "https://$server:6443/livez"',
    ),
    Kind(
        "kubelet-filtered",
        "a filter on a node drops what the API server asks its kubelet",
        "interface",
        filter_script("input", "tcp dport 10250 drop"),
        "nft list table inet site | grep -q 'dport 10250 drop'",
    ),
)
_OF_PODS = (
    Kind(
        "pod-off",
        "the interface of a node that leads to a pod is switched off",
        "interface",
        f'{_ADDRESS}ping -q -c 1 -W 2 "$address" >/dev/null\n'
        "mac=$(ip neighbour show \"$address\" dev cni0 | sed 's/.*lladdr \\([^ ]*\\).*/\\1/')\n"
        'dev=$(bridge fdb show br cni0 | sed -n "s/^$mac dev \\(veth[^ ]*\\) .*/\\1/p" | head -n 1)\n'
        '[ -n "$dev" ]\nip link set "$dev" down\necho "ip link set $dev up"\n',
        "ip -o link show master cni0 | grep -qv '[<,]UP[,>]'",
    ),
    Kind(
        "pod-no-gateway",
        "a pod has no default route",
        "interface",
        f"{_ADDRESS}for file in /run/netns/cni-*; do\n"
        '  nsenter --net="$file" ip -o -4 address show | grep -q " $address/" || continue\n'
        '  route=$(nsenter --net="$file" ip route show default)\n  nsenter --net="$file" ip route del default\n'
        '  echo "nsenter --net=$file ip route add $route"\ndone\n',
        'for file in /run/netns/cni-*; do\n  nsenter --net="$file" ip route show default | grep -q . || exit 0\ndone\n'
        "exit 1",
    ),
    Kind(
        "flannel-off",
        "a node's end of flannel's tunnels is switched off",
        "interface",
        "echo 'ip link set flannel.1 up'\n"
        'ip -o route show dev flannel.1 | while read -r route; do echo "ip route replace $route dev flannel.1"; done\n'
        "ip neighbour show dev flannel.1 nud permanent |\n"
        '  while read -r near; do echo "ip neighbour replace ${near% PERMANENT*} dev flannel.1 nud permanent"; done\n'
        "ip link set flannel.1 down\n",
        "! ip -o link show flannel.1 | grep -q '[<,]UP[,>]'",
    ),
    Kind(
        "flannel-filtered",
        "a filter on a node drops the packets of flannel's tunnels that come for it",
        "interface",
        filter_script("input", "udp dport 8472 drop"),
        "nft list table inet site | grep -q 'dport 8472 drop'",
    ),
    Kind(
        "no-way-to-pods",
        "a node has no route to the pods of another one",
        "interface",
        'route=$(ip -o route show "$block")\n[ -n "$route" ]\nip route del "$block"\necho "ip route replace $route"\n',
        '! ip -o route show "$block" | grep -q .',
    ),
)
CLUSTER_KINDS = (*_OF_OBJECTS, *_OF_CONTROL, *_OF_NODES, *_OF_PODS)
_ALL_APPS = tuple((app.name, "default") for app in APPS)
_SERVICES = tuple((f"service/{name}", name, space) for name, space in (*_ALL_APPS, ("kube-dns", _DNS)))
_DEPLOYMENTS = tuple((f"deployment/{name}", name, space) for name, space in _ALL_APPS)
_NAME_SERVER = ("deployment/coredns", "coredns", _DNS)
_ZONE = ("configmap/coredns", "coredns", _DNS)
_ON_OBJECTS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    **dict.fromkeys(("service-selector", "service-port"), _SERVICES),
    "no-replicas": (*_DEPLOYMENTS, _NAME_SERVER),
    **dict.fromkeys(("wrong-image", "failing-probe", "crash-loop", "no-room", "closed-by-policy"), _DEPLOYMENTS),
    "wrong-zone": (_ZONE,),
}
"""By kind, the objects that it breaks: each with its name and namespace."""
OBJECTS = tuple(dict.fromkeys(each[0] for objects in _ON_OBJECTS.values() for each in objects))
"""The objects that an answer may name."""


def cluster_places(kind: Kind, plan: Plan) -> Iterator[FaultPlace]:
    """The places that the plan of a board with a manifest has for a kind of a cluster."""
    plane, *workers = plan.hosts
    for host in plan.hosts:
        if kind in (*_OF_OBJECTS, *_OF_CONTROL):
            break
        others = [other for other in plan.hosts if other != host]
        own = {"host": host.name, "server": plane.address}
        if kind.name == "no-way-to-pods":
            for other in others:
                yield FaultPlace(host.name, other.name, {"block": f"172.31.{other.index}.0/24"})
        elif kind.name != "server-refused" or host != plane:
            yield FaultPlace(host.name, others[0].name, own)
    for known, what in _of_control(kind, plan):
        yield FaultPlace(plane.name, workers[0].name, known, of_cluster=what)


def _of_control(kind: Kind, plan: Plan) -> Iterator[tuple[Mapping[str, str], str]]:
    """Variables of each place on the control plane, and the object or node that is broken from there."""
    for what, name, space in _ON_OBJECTS.get(kind.name, ()):
        yield {"name": name, "space": space}, what
    if kind.name == "drained":
        yield from (({"node": host.name, "space": _DNS}, host.name) for host in plan.hosts)
    if kind in _OF_CONTROL:
        yield from (({"name": app.name, "space": "default", "node": plan.hosts[1].name}, "") for app in APPS)
