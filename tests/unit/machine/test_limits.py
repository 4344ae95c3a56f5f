"""How much memory is there, on machines described in files; and what a lab takes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import EnvironmentLacks
from minigts.machine import limits
from minigts.machine.limits import MemoryLimit
from minigts.providers.uml import memory
from minigts.providers.uml.run.command_line import CACHE_MB
from minigts.topology.read.load import parse

MEMINFO = "MemTotal: 8388608 kB\nMemFree: 100 kB\nMemAvailable: 4194304 kB\n"
MIB = 1 << 20


def machine(tmp_path: Path, mount: str = "", cgroup: str = "") -> Path:
    """A /proc with 4096 of 8192 MB available, and these lines of mountinfo and of /proc/self/cgroup."""
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text(MEMINFO)
    (tmp_path / "proc" / "self" / "mountinfo").write_text(mount)
    (tmp_path / "proc" / "self" / "cgroup").write_text(cgroup)
    return tmp_path / "proc"


def group(directory: Path, **files: int | str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name.replace("__", ".")).write_text(f"{content}\n")


def least(proc: Path) -> MemoryLimit:
    return limits.memory_limits(proc, proc / "no shared memory")[0]


def test_without_control_groups_what_is_available_counts(tmp_path: Path) -> None:
    assert (least(machine(tmp_path)).free_mb, least(tmp_path / "proc").whole_mb) == (4096, 8192)


@pytest.mark.parametrize(("mode", "free_mb"), [("0", 4096), ("1", 4096), ("2", 1024), ("x", 4096)])
def test_what_linux_promises_is_a_limit_where_it_promises_no_more_than_it_has(
    tmp_path: Path, mode: str, free_mb: int
) -> None:
    proc = machine(tmp_path)
    (proc / "meminfo").write_text(f"{MEMINFO}CommitLimit: 2097152 kB\nCommitted_AS: 1048576 kB\n")
    (proc / "sys" / "vm").mkdir(parents=True)
    (proc / "sys" / "vm" / "overcommit_memory").write_text(f"{mode}\n")
    assert least(proc).free_mb == free_mb
    (proc / "meminfo").write_text(MEMINFO)
    assert least(proc).free_mb == 4096


def test_shared_memory_is_one_of_the_limits() -> None:
    found = {limit.name: limit for limit in limits.memory_limits()}
    assert found["/dev/shm"].free_mb <= found["/dev/shm"].whole_mb


@pytest.mark.parametrize("own", ["/", "/a/b"])
def test_every_group_above_is_a_limit_in_version_2(tmp_path: Path, own: str) -> None:
    top = tmp_path / "cgroup"
    proc = machine(tmp_path, f"1 0 0:1 / {top} rw - cgroup2 cgroup2 rw\n", f"0::{own}\n")
    group(top, memory__max=1000 * MIB, memory__current=400 * MIB, memory__stat=f"anon 5\ninactive_file {100 * MIB}")
    group(top / "a" / "b", memory__max="max", memory__current=5)
    assert least(proc).free_mb == 700  # what is used, less the files that would be given up
    assert least(proc).whole_mb == 1000
    group(top / "a", memory__max=300 * MIB, memory__current=0)
    assert least(proc).free_mb == (700 if own == "/" else 300)


@pytest.mark.parametrize("own", ["/a", "/elsewhere/than/this/mount"])
def test_version_1_beside_version_2(tmp_path: Path, own: str) -> None:
    top, unified = tmp_path / "memory", tmp_path / "unified"
    mounts = (
        f"1 0 0:1 / {tmp_path / 'cpu'} rw - cgroup cgroup rw,cpu\n2 0 0:2 / {top} rw - cgroup cgroup rw,memory\n"
        f"3 0 0:3 / {unified} rw - cgroup2 cgroup2 rw\n"
    )
    proc = machine(tmp_path, mounts, f"4:memory:{own}\n1:cpu:/\n0::/\n")
    group(unified)
    group(tmp_path / "cpu")
    unlimited = 9223372036854771712
    group(top, memory__limit_in_bytes=unlimited, memory__usage_in_bytes=5)
    group(top / "a", memory__limit_in_bytes=unlimited, memory__usage_in_bytes=5)
    assert least(proc).free_mb == 4096
    limited = top / "a" if own == "/a" else top
    group(limited, memory__limit_in_bytes=600 * MIB, memory__usage_in_bytes=100 * MIB)
    assert (least(proc).free_mb, str(limited) in least(proc).name) == (500, True)


def test_a_mount_that_shows_part_of_the_groups(tmp_path: Path) -> None:
    """As in a container without a namespace of its own for groups: the mount begins at its group."""
    top = tmp_path / "cgroup"
    proc = machine(tmp_path, f"1 0 0:1 /docker/x {top} rw - cgroup2 cgroup2 rw\n", "0::/docker/x/inner\n")
    group(top / "inner", memory__max=10 * MIB, memory__current=0)
    assert least(proc).free_mb == 10


@pytest.mark.parametrize("broken", ["", "MemAvailable: x kB\nMemTotal: 1 kB", "MemAvailable:\nMemTotal:\n", "\0"])
def test_what_cannot_be_read_is_left_out(tmp_path: Path, broken: str) -> None:
    proc = machine(tmp_path, "1 2\n - \n1 0 0:1 / /x rw - cgroup2\n", "no colon\n0::/\n:::::\n")
    (proc / "meminfo").write_text(broken)
    assert limits.memory_limits(proc, proc / "none") == ()


def kernels(hosts: int, memory_text: str = "512MB", switches: str = "") -> tuple[memory.Kernel, ...]:
    text = f"name: x\nchain: {{hosts: {hosts}}}\ndefaults: {{host: {{memory: {memory_text}}}}}\n{switches}"
    return memory.kernels_of(parse(text, "x.yaml"))


def limit(free_mb: int, whole_mb: int = 24_000, name: str = "/dev/shm") -> MemoryLimit:
    return MemoryLimit(name, free_mb, whole_mb, "remount it")


def test_hosts_that_find_room_are_let_in() -> None:
    each_mb = kernels(2)[0].takes_mb("swarm")
    memory.require_memory(kernels(60), ["none", "swarm"], [limit(60 * each_mb)])
    with pytest.raises(EnvironmentLacks):
        memory.require_memory(kernels(60), ["none", "swarm"], [limit(60 * each_mb - 1)])


def test_a_variant_takes_what_its_family_takes_and_no_less_than_the_dearest() -> None:
    _, one = kernels(2)
    assert one.takes_mb("kubernetes-calico") == one.takes_mb("libnetwork-etcd") > one.takes_mb("kubernetes")
    assert one.takes_mb("kubernetes-flannel") > one.takes_mb("kubernetes-calico")
    assert one.takes_mb("swarm-encrypted") == one.takes_mb("libnetwork-etcd") > one.takes_mb("swarm")


def test_the_first_host_of_each_network_has_the_control_plane() -> None:
    text = (
        "name: x\ndefaults: {host: {memory: 1GB}}\nhosts: {a: {}, b: {}, c: {}, d: {}, e: {}}\nswitches: {s: {}}\n"
        "links: [{ends: [a, s]}, {ends: [b, s]}, {ends: [c, s]}, {ends: [d, s]}, {ends: [e, s]}]\n"
    )
    groups = "groups: {one: [a, b], two: [d, c]}\n"
    for more, leaders in (("", {"a"}), (groups, {"a", "d"})):
        found = memory.kernels_of(parse(text + more, "x.yaml"))
        dear = {each.name for each in found if each.takes_mb("kubernetes") > 800}
        assert dear == leaders
        assert len({each.takes_mb("swarm") for each in found if each.kind != "switch"}) == 1


def test_120_hosts_with_docker_do_not_fit_into_24_gb_and_bare_they_do() -> None:
    there = [limit(12_000, name="this machine's memory"), limit(24_000)]
    with pytest.raises(EnvironmentLacks) as refused:
        memory.require_memory(kernels(120), ["none", "swarm"], there)
    assert "120 kernels with the overlay swarm need" in str(refused.value)
    assert "12000 MB are free by this machine's memory" in str(refused.value)
    each_mb = kernels(2)[0].takes_mb("swarm")
    assert f"{12_000 // each_mb} hosts of this kind, or `--overlay none`" in str(refused.value)
    memory.require_memory(kernels(120), ["none"], there)


def test_memory_that_no_machine_has_is_refused_whatever_is_measured() -> None:
    with pytest.raises(EnvironmentLacks, match=r"h1, h2: `memory: 1048576MB` is more than .* 24000 MB by /dev/shm"):
        memory.require_memory(kernels(2, "1024GB"), ["none"], [limit(20_000, 64_000, "a group"), limit(23_000)])


@pytest.mark.parametrize(
    ("hosts", "names"), [(3, "h1, h2, h3"), (4, "h1, h2, h3 and 1 more"), (9, "h1, h2, h3 and 6 more")]
)
def test_of_many_hosts_with_too_much_memory_three_are_named(hosts: int, names: str) -> None:
    with pytest.raises(EnvironmentLacks) as refused:
        memory.require_memory(kernels(hosts, "1024GB"), ["none"], [limit(20_000)])
    assert str(refused.value).startswith(f"{names}: `memory: 1048576MB` is more than this machine has")


def test_much_declared_memory_costs_its_description_from_the_beginning() -> None:
    (small, large) = (kernels(2, size)[0].takes_mb("none") for size in ("512MB", "8GB"))
    assert large - small == (8192 - 512) // 64
    with pytest.raises(EnvironmentLacks, match="`memory: 512MB` for each"):
        memory.require_memory(kernels(10, "8GB"), ["none"], [limit(1000)])


def test_no_host_takes_more_than_it_is_given_and_its_kernel() -> None:
    assert kernels(2, "128MB")[0].takes_mb("libnetwork-etcd") == 128 + memory.KERNEL_MB
    assert memory.Kernel("kernel", 2048, "whole").takes_mb("none") == 2048 + memory.KERNEL_MB


@pytest.mark.parametrize("memory_text", ["128MB", "512MB"])
def test_a_disks_cache_is_beside_the_hosts_memory(memory_text: str) -> None:
    text = (
        f"name: x\ntime: virtual\ndefaults: {{host: {{memory: {memory_text}}}}}\n"
        "hosts: {a: {disk: cached}, b: {}}\nlinks: [{ends: [a, b]}]\n"
    )
    cached, durable = memory.kernels_of(parse(text, "x.yaml"))
    for overlay in ("mesh", "libnetwork-etcd"):
        assert cached.takes_mb(overlay) - durable.takes_mb(overlay) == memory.KEPT_MB > CACHE_MB
    assert memory.Kernel("kernel", 512, "whole", has_cache=True).takes_mb("none") == 532 + memory.KEPT_MB


def test_a_switch_has_no_overlay() -> None:
    switch = memory.Kernel("s", 512, "switch")
    assert switch.takes_mb("swarm") == switch.takes_mb("none") < kernels(2)[0].takes_mb("swarm")
