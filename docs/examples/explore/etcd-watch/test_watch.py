"""Whether a watch of etcd begins at the revision that was asked for, while links lose all for some seconds."""

import json

WATCHING_S, FILLING_S = 35, 60
WATCHER = ["python3", "/usr/local/lib/watcher.py"]


def test_a_watch_begins_where_it_was_asked_to(lab, course):
    hosts = [host.name for host in lab.hosts]
    lab.host("a").run(*WATCHER, "fill", timeout_s=FILLING_S)
    watching = [*WATCHER, str(WATCHING_S), *hosts]
    history = course.clients(dict.fromkeys(hosts, watching), timeout_s=2 * WATCHING_S)
    (course.folder / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in history))
    heard = sum(len(each.get("revisions", ())) for each in history)
    wrong = [each for each in history if any(early < each["start"] for early in each.get("revisions", ()))]
    course.note(f"{len(history)} watches heard of {heard} changes")
    for each in wrong:
        first, last = each["start"], min(each["revisions"])
        course.note(f"{each['client']} asked {each['member']} for revision {first} and later, and was told of {last}")
    course.require(heard > 300, f"only {heard} events")
    assert not wrong, f"{len(wrong)} of {len(history)} watches were told of revisions before the one they began at"
