"""What three clients are promised by Valkey with Sentinel, while the network is parted and mended."""

import json

ASKING_S, SETTLING_S = 60, 30


def history_of(program, lab, course):
    """What the clients on all hosts asked and were answered."""
    argv = ["python3", f"/usr/local/lib/{program}", str(ASKING_S)]
    history = course.clients({host.name: argv for host in lab.hosts}, timeout_s=2 * ASKING_S)
    (course.folder / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in history))
    return history


def ask(lab, *words):
    """What the master says that host a's Sentinel names, when all has settled."""
    sentinel = ("valkey-cli", "-p", "26379", "sentinel", "get-master-addr-by-name", "main")
    master = lab.host("a").run(*sentinel).stdout.split()[0]
    return lab.host("a").run("valkey-cli", "-h", master, *words).stdout.split()


def test_no_acknowledged_write_is_lost(lab, course):
    history = history_of("writes.py", lab, course)
    course.sleep(SETTLING_S)
    found = course.check_set(history, ask(lab, "smembers", "writes"))
    course.note(f"{found.acknowledged} writes were acknowledged, {len(found.lost)} of them are lost")
    course.require(found.acknowledged > 100, f"only {found.acknowledged} writes")
    assert not found.lost, f"{len(found.lost)} of {found.acknowledged} acknowledged writes are lost"


def test_a_register_is_linearizable(lab, course):
    found = course.check_registers(history_of("register.py", lab, course))
    course.note(f"{found.operations} operations: {found.verdict}")
    course.require(found.operations > 100, f"only {found.operations} operations")
    assert found.holds, f"{found.operations} operations are {found.verdict}"
