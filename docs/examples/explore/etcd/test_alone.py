"""What etcd promises a client of one member whose power is cut: what was acknowledged is there."""

import json

ADDING_S, SETTLING_S = 20, 3
CLIENT = ["python3", "/usr/local/lib/writer.py"]


def test_a_member_keeps_what_it_has_acknowledged(lab, course):
    history = course.clients({"client": [*CLIENT, "add", "a", str(ADDING_S)]}, timeout_s=3 * ADDING_S)
    (course.folder / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in history))
    course.sleep(SETTLING_S)
    there = lab.host("client").run(*CLIENT, "all", "a", timeout_s=120).stdout.split()
    found = course.check_set(history, there)
    course.note(f"{found.acknowledged} values were acknowledged, {len(found.lost)} of them are lost")
    course.require(found.acknowledged > 100, f"only {found.acknowledged} writes")
    assert not found.lost, f"{len(found.lost)} of {found.acknowledged} acknowledged values are lost"
