"""Asks Services of a cluster for a page at a steady pace, and says what became of each: one line of JSON.

requests.py [--every S] [--for S] [--timeout S] [--at S COMMAND] [--look-at S NODE] NAME=ADDRESS...

ADDRESS is a Service's address, or pod:LABEL for the address of the pod with `app: LABEL`, on port 8080. Each request
has a connection of its own, and is lost when no whole answer has come within the timeout.

For each NAME: `requests`; `lost`; `first_lost_s` and `last_lost_s`, when a lost one was sent, by this program's own
time, 0 if none was; `lost_spans_s`, the first and last of those that were lost one after another; `connect_ms` and
`answer_ms`, medians. `--at` runs a command of the shell meanwhile. `--look-at`,
on the control plane, adds `not_ready_s`, since when the node's condition Ready is not True, and for each NAME
`replaced_s` and `replacement_ready_s`, when the youngest pod of `app: NAME` was made and was ready; the API server
has whole seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import time
from datetime import datetime
from statistics import median

PORT = 8080


def kubectl(*arguments: str) -> dict:
    environment = {"KUBECONFIG": "/etc/kubernetes/admin.conf", **os.environ}
    argv = ["kubectl", "get", *arguments, "--output", "json"]
    return json.loads(subprocess.run(argv, env=environment, check=True, capture_output=True).stdout)


def address_of(word: str) -> str:
    if not word.startswith("pod:"):
        return word
    (pod,) = kubectl("pods", "--selector", f"app={word.removeprefix('pod:')}")["items"]
    return pod["status"]["podIP"]


async def asked(address: str) -> float:
    """One page. The seconds until the connection was open."""
    began = time.monotonic()
    reader, writer = await asyncio.open_connection(address, PORT)
    opened = time.monotonic() - began
    try:
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        if not (await reader.read()).startswith(b"HTTP/1.0 200"):
            raise ConnectionError("no whole answer")
    finally:
        writer.close()
    return opened


async def request(address: str, timeout_s: float, sent: float, into: list) -> None:
    began = time.monotonic()
    try:
        opened = await asyncio.wait_for(asked(address), timeout_s)
    except (OSError, TimeoutError):
        into.append((sent, None, None))
    else:
        into.append((sent, opened * 1000, (time.monotonic() - began) * 1000))


async def requests(address: str, options: argparse.Namespace, began: float) -> dict:
    done: list = []
    open_ones = []
    for number in range(round(options.duration / options.every)):
        moment = number * options.every
        await asyncio.sleep(max(0, began + moment - time.monotonic()))
        open_ones.append(asyncio.create_task(request(address, options.timeout, moment, done)))
    await asyncio.gather(*open_ones)
    lost = sorted(sent for sent, opened, _ in done if opened is None)
    return {
        "requests": len(done),
        "lost": len(lost),
        "first_lost_s": lost[0] if lost else 0,
        "last_lost_s": lost[-1] if lost else 0,
        "lost_spans_s": spans(lost, options.every),
        "connect_ms": median([opened for _, opened, _ in done if opened is not None] or [0]),
        "answer_ms": median([answer for _, _, answer in done if answer is not None] or [0]),
    }


def spans(moments: list[float], every: float) -> list[list[float]]:
    """The first and the last of each run of moments that are `every` apart, give or take a half."""
    found: list[list[float]] = []
    for moment in moments:
        if found and moment - found[-1][1] < 1.5 * every:
            found[-1][1] = moment
        else:
            found.append([moment, moment])
    return found


async def command(moment: float, line: str, began: float) -> None:
    await asyncio.sleep(max(0, began + moment - time.monotonic()))
    environment = {"KUBECONFIG": "/etc/kubernetes/admin.conf", **os.environ}
    process = await asyncio.create_subprocess_shell(line, stdout=asyncio.subprocess.DEVNULL, env=environment)
    if await process.wait() != 0:
        raise SystemExit(f"{line} ended with {process.returncode}")


def since(began: float, written: str) -> float:
    return datetime.fromisoformat(written).timestamp() - began


async def look(moment: float, node: str, names: list[str], began: float, found: dict) -> None:
    began_wall = time.time() - (time.monotonic() - began)
    await asyncio.sleep(max(0, began + moment - time.monotonic()))

    def ready(thing: dict) -> dict:
        return next(each for each in thing["status"]["conditions"] if each["type"] == "Ready")

    condition = ready(await asyncio.to_thread(kubectl, "node", node))
    if condition["status"] != "True":
        found["not_ready_s"] = since(began_wall, condition["lastTransitionTime"])
    for name in names:
        pods = (await asyncio.to_thread(kubectl, "pods", "--selector", f"app={name}"))["items"]
        youngest = max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])
        found[name]["replaced_s"] = since(began_wall, youngest["metadata"]["creationTimestamp"])
        if ready(youngest)["status"] == "True":
            found[name]["replacement_ready_s"] = since(began_wall, ready(youngest)["lastTransitionTime"])


async def run(options: argparse.Namespace) -> dict:
    services = {name: address_of(word) for name, _, word in (each.partition("=") for each in options.services)}
    found: dict = {name: {} for name in services}
    began = time.monotonic()
    tasks = {name: asyncio.create_task(requests(address, options, began)) for name, address in services.items()}
    others = [command(float(moment), line, began) for moment, line in options.at]
    others += [look(float(moment), node, list(services), began, found) for moment, node in options.look_at]
    await asyncio.gather(*tasks.values(), *others)
    for name, task in tasks.items():
        found[name] |= task.result()
    return found


parser = argparse.ArgumentParser()
parser.add_argument("--every", type=float, default=0.1)
parser.add_argument("--for", type=float, default=10, dest="duration")
parser.add_argument("--timeout", type=float, default=1)
parser.add_argument("--at", nargs=2, action="append", default=[])
parser.add_argument("--look-at", nargs=2, action="append", default=[])
parser.add_argument("services", nargs="+")
if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(parser.parse_args()))))  # noqa: T201
