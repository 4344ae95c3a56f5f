"""A container that joins an overlay network of Docker Swarm is in it within seconds, whoever else joins just then."""

import json
import re

ASKING_S, ALLOWED_S, PATIENCE_S = 60, 10, 30
"""A host that joins compares its tables with each of the three others, one after the other: two round trips each, of up
to 1.2 s over two links that are slow. An engine that is not answered gives up after 30 s."""
LINE = re.compile(
    r'time="\S+T\d\d:(\d\d):([\d.]+)Z" .* msg="(?:\w+\((\w+)\): )?'
    r"(Initiating unsolicited|Initiating {2}|Bulk sync to).* node (\w+)(.*)\""
)


def joins_of(history):
    """How long each join of a container took, in seconds, with the host and what the engine said; the longest last."""
    return sorted(
        (round((each["answered"] - each["sent"]) / 1e9, 3), each["client"], each["answer"])
        for each in history
        if each["op"] == "connect"
    )


def syncs_of(lab):
    """What the engines say of comparisons of tables, in the order of time: seconds of the hosts' clocks, the host, what
    it does (asks, answers, is answered by, timed out), and with whom."""
    ids, found = {}, []
    for host in lab.hosts:
        for line in host.run("grep", "-i", "bulk sync", "/var/log/dockerd.log").stdout.splitlines():
            if said := LINE.match(line):
                minutes, seconds, own, what, other, rest = said.groups()
                if own:
                    ids[own] = host.name
                does = {"Initiating unsolicited": "asks", "Initiating  ": "answers"}.get(what)
                does = does or ("timed out" if "timed out" in rest else "is answered by")
                found.append((int(minutes) * 60 + float(seconds), host.name, does, other))
    return sorted((at_s, host, does, ids.get(other, other)) for at_s, host, does, other in found)


def crossed(syncs, in_vain):
    """Whether the host that was not answered in time had itself been asked by the other one meanwhile, and answered."""
    at_s, host, _, other = in_vain
    asked_s = max(
        (each[0] for each in syncs if each[1:] == (host, "asks", other) and each[0] <= at_s - PATIENCE_S),
        default=at_s - PATIENCE_S,
    )
    return any(asked_s <= each[0] < at_s and each[1:] == (host, "answers", other) for each in syncs)


def test_no_join_takes_half_a_minute(lab, course):
    argv = ["python3", "/usr/local/lib/attach.py", str(ASKING_S)]
    history = course.clients({host.name: argv for host in lab.hosts}, timeout_s=6 * ASKING_S)
    (course.folder / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in history))
    joins, syncs = joins_of(history), syncs_of(lab)
    (course.folder / "syncs.txt").write_text("".join("{:11.6f} {} {} {}\n".format(*each) for each in syncs))
    in_vain = [each for each in syncs if each[2] == "timed out"]
    course.note(
        f"{len(joins)} joins, the longest {joins[-1][0]} s; {len(syncs)} lines of comparisons, {len(in_vain)} in vain, "
        f"{sum(crossed(syncs, each) for each in in_vain)} of these crossed one of the other host"
    )
    late = [each for each in joins if each[0] > ALLOWED_S]
    course.require(len(joins) > 10, f"only {len(joins)} joins")
    assert not late, f"{len(late)} of {len(joins)} joins took longer than {ALLOWED_S} s"
