"""Which kernels light hosts share, and what the clock, the supervisor and the bounds of memory know of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.providers.agent import client, protocol
from minigts.providers.agent.agent_line import AgentHost
from minigts.providers.uml import light, memory
from minigts.providers.uml.clock.process import ClockOrder, layout
from minigts.providers.uml.run.command_line import GuestKernel, KernelPort
from minigts.providers.uml.run.supervisor import Launch
from minigts.topology.read.load import parse

PATIENCE_S = 20.0
ROW = "name: row\ndefaults: {{host: {{light: true}}}}\nchain: {{hosts: {}, link: {{delay: 1ms}}}}\n"


def host(name: str, number: int, ports: int = 2, base: str = "") -> GuestKernel:
    own = tuple(KernelPort(f"02:00:00:{number:02x}:00:{port:02x}", name=f"eth{port + 1}") for port in range(ports))
    return GuestKernel(name, 512, own, base=base, number=number)


def launch(*machines: GuestKernel, light_ones: frozenset[str]) -> Launch:
    return Launch(Path("/boot"), Path("/root.ext4"), light.seats_of(machines, light_ones), ())


def test_kernels_follow_the_hosts_and_tags_are_apart() -> None:
    made = launch(host("a", 0), host("b", 1), host("c", 2, ports=3), light_ones=frozenset({"a", "c"}))

    assert [each.name for each in made.machines] == ["a", "b", "c", "light.1"]
    assert [each.name for each in made.kernels] == ["b", "light.1"]
    kernel = made.machines[-1]
    assert (kernel.number, kernel.ports, kernel.trunk) == (3, (), True)
    assert [[port.tag for port in each.ports] for each in made.sharing("light.1")] == [[1, 2], [3, 4, 5]]
    assert all(port.tag == 0 for port in made.machines[1].ports)


def test_a_kernel_has_only_so_many_and_hosts_of_one_file_system() -> None:
    most = light.MOST_IN_A_KERNEL
    hosts = [host(f"h{number}", number, ports=1 if number < most else 9) for number in range(most + 5)]
    other = [host("x", most + 5, base="/layer.ext4")]
    found = [*light.groups([*hosts, *other])]

    assert [len(group) for group in found] == [*light.sizes(most + 5), 1] == [most // 2 + 3, most // 2 + 3, 1]
    assert [sum(len(each.ports) == 9 for each in group) for group in found] == [3, 2, 0], "routers are dealt out"
    assert all([each.number for each in group] == sorted(each.number for each in group) for group in found)


def test_a_trunk_has_room_for_so_many_ports() -> None:
    wide = [host(f"h{number}", number, ports=2000) for number in range(3)]

    assert [len(group) for group in light.groups(wide)] == [2, 1]
    with pytest.raises(InputError, match="h0 has 4095 links, and a light host has room for 4094"):
        list(light.groups([host("h0", 0, ports=4095)]))


def test_a_launch_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = launch(host("a", 0), host("b", 1), light_ones=frozenset({"a"}))
    made.write(tmp_path / "launch.json")

    assert Launch.read(tmp_path / "launch.json") == made


def test_the_clock_is_told_who_is_within_which_kernel() -> None:
    made = launch(host("a", 0, ports=1), host("b", 1, ports=1), light_ones=frozenset({"b"}))
    told = layout(ClockOrder("clock", (), {}), made.machines, ())["hosts"]

    assert [(each["name"], each["trunk"], each.get("within")) for each in told] == [
        ("a", False, None),
        ("b", False, {"kernel": 2, "tags": [1]}),
        ("light.1", True, None),
    ]


def test_memory_is_that_of_the_shared_kernels() -> None:
    most = light.MOST_IN_A_KERNEL
    plan = parse(ROW.format(most + 5), "row.yaml", time="virtual")
    first, second = memory.kernels_of(plan)

    assert (first.name, first.hosts, second.hosts) == ("light.1", most // 2 + 3, most // 2 + 3)
    assert first.takes_mb("none") == round((26 + memory.LIGHT_MB * first.hosts) * memory.SPARE_MEMORY)
    assert first.takes_mb("none") <= light.kernel_mb(first.hosts) + memory.KERNEL_MB


def test_a_light_host_may_have_any_number_of_links() -> None:
    memory.require_ports(
        parse(
            "name: s\ndefaults: {host: {light: true}}\nstar: {clients: 200, link: {delay: 1ms}}\n",
            "s.yaml",
            time="virtual",
        )
    )
    with pytest.raises(InputError, match="has room for 43"):
        memory.require_ports(parse("name: s\nstar: {clients: 200, link: {delay: 1ms}}\n", "s.yaml", time="virtual"))


class Kernel:
    """In place of a kernel's process."""

    pid = 1

    def poll(self) -> int | None:
        return None

    def wait(self) -> int:
        return 0

    def kill(self) -> None: ...

    def send_signal(self, number: int, /) -> None: ...


def test_a_command_for_a_light_host_says_for_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the socket that a client comes to, the supervisor knows for which host the client's commands are."""
    monkeypatch.chdir(tmp_path)
    for name in ("light.1", "h1"):
        (tmp_path / "hosts" / name).mkdir(parents=True)
    ours, theirs = socket.socketpair()
    heard: list[tuple[int, bytes]] = []
    all_answered = threading.Event()

    def agent() -> None:
        with theirs:
            theirs.sendall(protocol.HELLO)
            decoder = protocol.Decoder()
            for _ in range(2):
                frame = next(iter(_frames(theirs, decoder)))
                heard.append((frame.kind, frame.payload))
                theirs.sendall(protocol.Frame(frame.channel, protocol.EXIT, b'{"code": 0}').encode())
            all_answered.wait(PATIENCE_S)

    async def main() -> None:
        kernel = AgentHost("light.1", Kernel(), ours, protocol.WINDOW)
        control = {name: f"hosts/{name}/control.sock" for name in ("light.1", "h1")}
        serving = asyncio.create_task(kernel.serve(control["light.1"], {control["h1"]: "h1"}))
        answering = asyncio.create_task(asyncio.to_thread(agent))
        while not (tmp_path / control["h1"]).exists():
            await asyncio.sleep(0.01)
        for name in ("h1", "light.1"):
            await asyncio.to_thread(_run(tmp_path, name))
        all_answered.set()
        await answering
        with contextlib.suppress(asyncio.CancelledError):
            await serving

    asyncio.run(main())
    (within, named), (plain, payload) = heard
    assert (within, plain) == (protocol.RUN_WITHIN, protocol.RUN)
    assert named == b"\x02h1" + payload
    assert json.loads(payload)["argv"] == ["true"]


def _frames(line: socket.socket, decoder: protocol.Decoder) -> list[protocol.Frame]:
    """The next requests; a client's end of its standard input is none."""
    while True:
        data = line.recv(1 << 16)
        assert data, "the supervisor has closed the line"
        found = [each for each in decoder.feed(data) if each.kind in (protocol.RUN, protocol.RUN_WITHIN)]
        if found:
            return found


def _run(rundir: Path, name: str) -> Callable[[], object]:
    return lambda: client.run(rundir, name, ["true"], timeout_s=20, check=True, stdin=b"", on_output=None)
