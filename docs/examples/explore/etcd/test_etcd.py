"""What etcd promises three clients, while the network is parted and hosts fail: each acknowledged write is
kept, and requests are done in one order that all see."""

import json

ASKING_S, SETTLING_S, MEMBER_S = 30, 5, 60
CLIENT = ["python3", "/usr/local/lib/client.py"]


def history_of(lab, course, *words):
    """What the clients on all hosts asked and were answered."""
    argv = [*CLIENT, str(ASKING_S), *words]
    history = course.clients({host.name: argv for host in lab.hosts}, timeout_s=2 * ASKING_S)
    (course.folder / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in history))
    return history


def judged(history, course):
    """Whether the requests on registers were done in one order that all see."""
    found = course.check_registers(each for each in history if each["op"] != "add")
    course.note(f"{found.operations} operations on registers: {found.verdict}")
    course.require(found.operations > 100, f"only {found.operations} operations")
    assert found.holds, f"{found.operations} operations are {found.verdict}"


def test_etcd_keeps_its_promise(lab, course):
    history = history_of(lab, course)
    course.sleep(SETTLING_S)
    there = lab.host("a").run(*CLIENT, "members", timeout_s=MEMBER_S).stdout.split()
    members = course.check_set([each for each in history if each["op"] == "add"], there)
    course.note(f"{members.acknowledged} writes were acknowledged, {len(members.lost)} of them are lost")
    course.require(members.acknowledged > 20, f"only {members.acknowledged} writes")
    assert members.holds, f"{len(members.lost)} of {members.acknowledged} acknowledged writes are lost"
    judged(history, course)


def test_serializable_reads_are_of_now(lab, course):
    """They are not, as etcd's documentation says."""
    judged(history_of(lab, course, "serializable"), course)
