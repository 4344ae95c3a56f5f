"""A block of addresses that flanneld has leased from etcd is used by one host at a time."""

import json

ASKING_S, PREFIX = 60, "/coreos.com/network/"
NETWORK = {
    "Network": "172.31.0.0/16",
    "SubnetLen": 24,
    "SubnetMin": "172.31.1.0",
    "SubnetMax": "172.31.2.0",
    "Backend": {"Type": "alloc"},
}
STOP = """
for name in flanneld docker; do
  for file in /run/minigts/daemons/$name.pid /run/$name.pid; do
    if [ -e "$file" ]; then kill "$(cat "$file")"; fi
  done
done
sleep 1
"""


def written(store, program, *words):
    return store.run(
        "env", "ETCDCTL_API=3", *program, "--endpoints", f"http://{store.address}:2379", *words, check=False
    )


def overwritten(store):
    """The blocks whose record, in the history that etcd keeps, names another host than before without having been
    deleted: the block, the host that had it, and the one that took it."""
    watch = ("timeout", "5", "etcdctl", "watch", "--prefix", f"{PREFIX}subnets/", "--rev", "1")
    lines = iter(written(store, watch).stdout.splitlines())
    owners, found = {}, []
    for event in lines:
        key, value = next(lines, ""), next(lines, "")
        block, owner = key.rpartition("/")[2], json.loads(value)["PublicIP"] if event == "PUT" else None
        before, owners[block] = owners.get(block), owner
        if before is not None and owner is not None and before != owner:
            found.append((block, before, owner))
    return found


def used_twice(history):
    """The times at which two hosts had the same block: the block, the hosts, and for how many seconds."""
    held = sorted(history, key=lambda each: each["sent"])
    return [
        (
            one["key"],
            one["client"],
            other["client"],
            round((min(one["answered"], other["answered"]) - other["sent"]) / 1e9, 3),
        )
        for number, one in enumerate(held)
        for other in held[number + 1 :]
        if one["key"] == other["key"] and one["client"] != other["client"] and other["sent"] < one["answered"]
    ]


def test_a_block_is_used_by_one_host(lab, course):
    store, *hosts = lab.hosts
    for host in lab.hosts:
        host.run("sh", "-c", STOP)
    written(store, ("etcdctl",), "del", "--prefix", f"{PREFIX}subnets/")
    written(store, ("etcdctl",), "put", f"{PREFIX}config", json.dumps(NETWORK))
    argv = ["python3", "/usr/local/lib/lease.py", store.address, str(ASKING_S)]
    history = course.clients({host.name: argv for host in hosts}, timeout_s=3 * ASKING_S)
    (course.folder / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in history))
    twice, taken = used_twice(history), overwritten(store)
    course.note(f"{len(history)} times a host had a block; used by two: {twice}; in etcd's history: {taken}")
    course.require(len(history) > 10, f"only {len(history)} times")
    assert not twice, f"{len(twice)} blocks of {len(history)} were used by two hosts"
    assert not taken, f"{len(taken)} leases were written over"
