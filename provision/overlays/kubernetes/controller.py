#!/usr/bin/env python3
"""controller.py SERVER AUTHORITY TOKEN [INTERFACE ADDRESS…]: what a cloud gives a cluster, on its control plane's host.

- Volumes: a claim of the StorageClass `local-path` gets a directory on the disk of the node that the scheduler chose. A
  pod on that node makes it, and removes it when the claim is gone.
- Addresses: a Service of type LoadBalancer gets one of ADDRESS…, for which this host answers on the segment of
  INTERFACE; kube-proxy does the rest.

SERVER is the API server's URL, AUTHORITY the file of its certificate's authority, TOKEN the file of this program's own
account. It keeps nothing: all that it knows is in the API server's objects, and what it does twice changes nothing.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CLASS_BY = "minigts/local-path"
BALANCER = "minigts/balancer"
NAMESPACE = "minigts"
IMAGE = "minigts/measure:latest"
ROOT = "/var/lib/minigts/volumes"
SELECTED = "volume.kubernetes.io/selected-node"
PLACE = re.compile(rf"{ROOT}/[a-z0-9.-]+")
AGAIN_S = 2.0

CLAIMS, VOLUMES, SERVICES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes", "/api/v1/services"
CLASSES, NODES = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/nodes"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
WORKERS = "labelSelector=app%3Dvolumes"
WATCHED = (CLAIMS, VOLUMES, SERVICES, CLASSES, f"{PODS}?{WORKERS}")

Object = dict[str, Any]


class Refused(Exception):
    """The API server's answer was no success."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        super().__init__(f"{code}: {text[:300]}")


class Api:
    """The API server, by one connection that is made anew when it has ended."""

    def __init__(self, server: str, authority: str, token: Path) -> None:
        place = urlsplit(server)
        self._place = (place.hostname or "", place.port or 443)
        self._trusted = ssl.create_default_context(cafile=authority)
        self._token = token
        self._kept: http.client.HTTPSConnection | None = None

    def open(self, method: str, path: str, body: Object | None, kind: str) -> tuple[Any, http.client.HTTPSConnection]:
        made = http.client.HTTPSConnection(*self._place, context=self._trusted)
        self._send(made, method, path, body, kind)
        return made.getresponse(), made

    def _send(self, to: http.client.HTTPSConnection, method: str, path: str, body: Object | None, kind: str) -> None:
        headers = {"Authorization": f"Bearer {self._token.read_text().strip()}", "Content-Type": kind}
        to.request(method, path, None if body is None else json.dumps(body), headers)

    def ask(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Object:
        """What it answers. Raises Refused, OSError and http.client's errors."""
        if self._kept is None:
            self._kept = http.client.HTTPSConnection(*self._place, context=self._trusted)
        try:
            self._send(self._kept, method, path, body, kind)
            answer = self._kept.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException):
            self._kept = None
            raise
        if answer.status >= 300:
            raise Refused(answer.status, text)
        found: Object = json.loads(text)
        return found

    def patch(self, path: str, change: Object) -> None:
        self.ask("PATCH", path, change, "application/merge-patch+json")

    def all(self, path: str) -> list[Object]:
        return list(self.ask("GET", path)["items"])

    def changes(self, path: str) -> Iterator[str]:
        """A line for each change from now on, and one at once."""
        joint = "&" if "?" in path else "?"
        answer, connection = self.open("GET", f"{path}{joint}watch=true", None, "application/json")
        try:
            yield ""
            while line := answer.readline():
                yield line.decode()
        finally:
            connection.close()


def full_name(thing: Object) -> str:
    return f"{thing['metadata'].get('namespace', '')}/{thing['metadata']['name']}"


def path_of(claim_or_service: Object, kind: str) -> str:
    about = claim_or_service["metadata"]
    return f"/api/v1/namespaces/{about['namespace']}/{kind}/{about['name']}"


def warn(api: Api, about: Object, kind: str, reason: str, message: str) -> None:
    """An event of this object, once: `kubectl describe` shows it."""
    meta = about["metadata"]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    where = f"/api/v1/namespaces/{meta['namespace']}/events"
    event = {
        "metadata": {"name": f"{meta['name']}.{meta['uid'][:8]}.{reason.lower()}", "namespace": meta["namespace"]},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": kind,
            **{key: meta[key] for key in ("namespace", "name", "uid")},
        },
        "reason": reason,
        "message": message,
        "type": "Warning",
        "source": {"component": "minigts"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    try:
        api.ask("POST", where, event)
    except Refused as error:
        if error.code != 409:
            raise


# ---- volumes


def worker_name(act: str, volume: str) -> str:
    return f"{act}-{volume}"


def worker(act: str, volume: str, node: str, place: str) -> Object:
    """A pod that makes or removes a volume's directory on its node, by the node's own programs, which its image lacks.
    It has the node's network: it takes no address of a pod."""
    inside = f"/volumes/{place.rpartition('/')[2]}"
    command = {"make": ["/usr/bin/mkdir", "-p", "-m", "0777"], "remove": ["/usr/bin/rm", "-rf"]}[act]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": worker_name(act, volume), "namespace": NAMESPACE, "labels": {"app": "volumes"}},
        "spec": {
            "nodeName": node,
            "hostNetwork": True,
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": act,
                    "image": IMAGE,
                    "imagePullPolicy": "IfNotPresent",
                    "command": [*command, inside],
                    "volumeMounts": [
                        {"name": "volumes", "mountPath": "/volumes"},
                        {"name": "programs", "mountPath": "/usr", "readOnly": True},
                    ],
                }
            ],
            "volumes": [
                {"name": "volumes", "hostPath": {"path": ROOT, "type": "DirectoryOrCreate"}},
                {"name": "programs", "hostPath": {"path": "/usr", "type": "Directory"}},
            ],
        },
    }


def volume_for(claim: Object, kind: Object, node: str) -> Object:
    about, wanted = claim["metadata"], claim["spec"]
    name = f"pvc-{about['uid']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": CLASS_BY}},
        "spec": {
            "capacity": {"storage": wanted["resources"]["requests"]["storage"]},
            "accessModes": wanted["accessModes"],
            "persistentVolumeReclaimPolicy": kind.get("reclaimPolicy", "Delete"),
            "storageClassName": kind["metadata"]["name"],
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                **{key: about[key] for key in ("namespace", "name", "uid", "resourceVersion")},
            },
            "hostPath": {"path": f"{ROOT}/{name}", "type": "DirectoryOrCreate"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
                    ]
                }
            },
        },
    }


def why_not(claim: Object, kind: Object) -> str:
    """Why a claim gets no volume here; empty where it does."""
    wanted = claim["spec"]
    if "ReadWriteMany" in wanted.get("accessModes", ()):
        return "a volume on one node's disk cannot be ReadWriteMany: use ReadWriteOnce"
    if wanted.get("volumeMode", "Filesystem") != "Filesystem":
        return "a volume here is a directory: use volumeMode Filesystem"
    if wanted.get("selector") or wanted.get("dataSource"):
        return "a volume is made empty here: leave selector and dataSource out"
    if kind.get("volumeBindingMode") != "WaitForFirstConsumer":
        return f"StorageClass {kind['metadata']['name']} has to say volumeBindingMode: WaitForFirstConsumer"
    return ""


class Volumes:
    """What the API server has of volumes now, and what is to be done about it."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kinds = {each["metadata"]["name"]: each for each in api.all(CLASSES) if each["provisioner"] == CLASS_BY}
        self._claims = api.all(CLAIMS)
        self._volumes = {each["metadata"]["name"]: each for each in api.all(VOLUMES)}
        self._workers = {each["metadata"]["name"]: each for each in api.all(f"{PODS}?{WORKERS}")}
        self._nodes = {each["metadata"]["name"] for each in api.all(NODES)}
        self._needed: set[str] = set()

    def see_to(self) -> None:
        for claim in self._claims:
            kind = self._kinds.get(claim["spec"].get("storageClassName", ""))
            if kind and not claim["spec"].get("volumeName") and "deletionTimestamp" not in claim["metadata"]:
                self._provide(claim, kind)
        for volume in self._volumes.values():
            own = volume["metadata"].get("annotations", {}).get("pv.kubernetes.io/provisioned-by") == CLASS_BY
            over = volume.get("status", {}).get("phase") == "Released"
            if own and over and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
                self._remove(volume)
        for name, pod in self._workers.items():
            if name not in self._needed and "deletionTimestamp" not in pod["metadata"]:
                self._api.ask("DELETE", f"{PODS}/{name}")

    def _provide(self, claim: Object, kind: Object) -> None:
        if why := why_not(claim, kind):
            warn(self._api, claim, "PersistentVolumeClaim", "ProvisioningFailed", why)
            return
        node = claim["metadata"].get("annotations", {}).get(SELECTED)
        if node is None:
            return
        if node not in self._nodes:  # the scheduler is to choose again
            change = {"metadata": {"annotations": {SELECTED: None}}}
            self._api.patch(path_of(claim, "persistentvolumeclaims"), change)
            return
        made = volume_for(claim, kind, node)
        if self._is_done("make", made, node) and made["metadata"]["name"] not in self._volumes:
            self._api.ask("POST", VOLUMES, made)

    def _remove(self, volume: Object) -> None:
        terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        node = terms[0]["matchExpressions"][0]["values"][0]
        nowhere = node not in self._nodes or not PLACE.fullmatch(volume["spec"]["hostPath"]["path"])
        if nowhere or self._is_done("remove", volume, node):
            self._api.ask("DELETE", f"{VOLUMES}/{volume['metadata']['name']}")

    def _is_done(self, act: str, volume: Object, node: str) -> bool:
        """Whether a pod has done this on the node; makes that pod where there is none."""
        name = worker_name(act, volume["metadata"]["name"])
        self._needed.add(name)
        if name not in self._workers:
            where = volume["spec"]["hostPath"]["path"]
            self._api.ask("POST", PODS, worker(act, volume["metadata"]["name"], node, where))
            return False
        return bool(self._workers[name].get("status", {}).get("phase") == "Succeeded")


# ---- addresses


def addresses_of(service: Object) -> list[str]:
    return [each.get("ip", "") for each in service.get("status", {}).get("loadBalancer", {}).get("ingress", ())]


def is_ours(service: Object) -> bool:
    wanted = service["spec"]["type"] == "LoadBalancer" and "deletionTimestamp" not in service["metadata"]
    return bool(wanted and service["spec"].get("loadBalancerClass", BALANCER) == BALANCER)


def see_to_addresses(api: Api, interface: str, pool: list[str]) -> None:
    services = sorted(api.all(SERVICES), key=full_name)
    having = {full_name(each): set(addresses_of(each)).intersection(pool) for each in services}
    taken: set[str] = set()
    for service in services:
        if is_ours(service):
            taken |= having[full_name(service)]
        elif having[full_name(service)]:
            set_addresses(api, service, [])
    for service in services:
        if not is_ours(service) or having[full_name(service)]:
            continue
        asked = service["spec"].get("loadBalancerIP", "")
        free = [each for each in pool if each not in taken and asked in ("", each)]
        if free:
            taken.add(free[0])
            set_addresses(api, service, free[:1])
        else:
            warn(api, service, "Service", "NoAddress", why_none(asked, pool))
    if pool:
        answer_for(interface, taken, pool)


def why_none(asked: str, pool: list[str]) -> str:
    there = f"this cluster's are {pool[0]} to {pool[-1]}" if pool else "no segment of the control plane has a free one"
    return f"{f'{asked} is not free' if asked else 'no address is free'}: {there}"


def set_addresses(api: Api, service: Object, addresses: list[str]) -> None:
    change = {"ingress": [{"ip": each} for each in addresses]} if addresses else None
    api.patch(f"{path_of(service, 'services')}/status", {"status": {"loadBalancer": change}})


def answer_for(interface: str, wanted: set[str], pool: list[str]) -> None:
    """This host answers for these addresses of the pool on the interface's segment, and for no others."""
    listed = ("ip", "-j", "-4", "address", "show", "dev", interface)
    said = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    there = {end["local"] for each in json.loads(said) for end in each.get("addr_info", ())}.intersection(pool)
    for act, addresses in (("add", wanted - there), ("del", there - wanted)):
        for address in sorted(addresses):
            subprocess.run(("ip", "address", act, f"{address}/32", "dev", interface), check=True)


# ---- what happens


def complain(what: str, error: Exception) -> None:
    sys.stderr.write(f"{what}: {type(error).__name__}: {error}\n")
    sys.stderr.flush()


def listen(api: Api, path: str, changed: threading.Event) -> None:
    while True:
        try:
            for _ in api.changes(path):
                changed.set()
        except (OSError, http.client.HTTPException) as error:
            complain(path, error)
        time.sleep(AGAIN_S)


def main() -> None:
    server, authority, token, *balancer = sys.argv[1:]
    interface, pool = "".join(balancer[:1]), balancer[1:]
    api, changed = Api(server, authority, Path(token)), threading.Event()
    for path in WATCHED:
        threading.Thread(target=listen, args=(api, path, changed), daemon=True).start()
    while True:
        changed.wait()
        changed.clear()
        for see_to in (lambda: Volumes(api).see_to(), lambda: see_to_addresses(api, interface, pool)):
            try:
                see_to()
            except (Refused, OSError, http.client.HTTPException, subprocess.CalledProcessError) as error:
                complain("it is tried again", error)
                time.sleep(AGAIN_S)
                changed.set()


if __name__ == "__main__":
    main()
