"""What JetStream promises a publisher whose members' processes are killed: what was acknowledged is in the stream."""

import json

ADDING_S, SETTLING_S = 40, 10
CLIENT = ["python3", "/usr/local/lib/client.py"]
MEMBERS = ["a", "b", "c"]


def test_the_stream_keeps_what_it_has_acknowledged(lab, course):
    asking = {"client": [*CLIENT, "add", str(ADDING_S), *MEMBERS]}
    history = course.clients(asking, timeout_s=3 * ADDING_S)
    (course.folder / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in history))
    course.sleep(SETTLING_S)
    there = lab.host("client").run(*CLIENT, "all", *MEMBERS, timeout_s=120).stdout.split()
    found = course.check_set(history, there)
    course.note(f"{found.acknowledged} values were acknowledged, {len(found.lost)} of them are lost")
    course.require(found.acknowledged > 100, f"only {found.acknowledged} writes")
    assert not found.lost, f"{len(found.lost)} of {found.acknowledged} acknowledged values are lost"
