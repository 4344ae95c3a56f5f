"""No write is lost that was acknowledged, while the network is parted and mended."""

import json

WRITING_S, SETTLING_S = 60, 30


def test_no_acknowledged_write_is_lost(lab, course):
    for host in lab.hosts:
        host.shell("python3 /usr/local/lib/writes.py >/root/history 2>/root/errors </dev/null &")
    course.sleep(WRITING_S)
    for host in lab.hosts:
        host.run("touch", "/root/stop")
    course.sleep(SETTLING_S)
    history = "".join(host.run("cat", "/root/history").stdout for host in lab.hosts)
    (course.folder / "history.jsonl").write_text(history)
    sentinel = ("valkey-cli", "-p", "26379", "sentinel", "get-master-addr-by-name", "main")
    master = lab.host("a").run(*sentinel).stdout.split()[0]
    there = {*lab.host("a").run("valkey-cli", "-h", master, "smembers", "writes").stdout.split()}
    acknowledged = {each["value"] for each in map(json.loads, history.splitlines()) if each["answer"] == "ok"}
    lost = acknowledged - there
    course.note(f"{len(acknowledged)} writes were acknowledged, {len(lost)} of them are lost; the master is {master}")
    assert len(acknowledged) > 100
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged writes are lost"
