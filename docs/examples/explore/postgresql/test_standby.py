"""What PostgreSQL's standby has of what the primary has acknowledged, when the primary ends and the standby is
promoted."""

import json

WRITING_S, READY_S, TOTAL = 25, 120, 200
TABLES = f"""
create table written (value text primary key);
create table account (name text primary key, balance int not null check (balance >= 0));
insert into account values ('x', {TOTAL // 2}), ('y', {TOTAL // 2});
"""


def ask(host, statements):
    return host.run("psql", "-h", "127.0.0.1", "-U", "postgres", "-qtAc", statements).stdout.split()


def ready(host, question):
    """Wait until the host's server answers yes to it."""
    script = f'until psql -h 127.0.0.1 -U postgres -qtAc "{question}" | grep -q t; do sleep 0.1; done 2>/dev/null'
    host.run("sh", "-c", script, timeout_s=READY_S)


def judged(lab, course, *words, synchronous):
    """Let a client write at the primary on a and read from the standby on b; end the primary, promote the standby, and
    compare what that has."""
    primary, standby = lab.host("a"), lab.host("b")
    ready(primary, "select count(*) = 1 from pg_stat_replication where state = 'streaming'")
    if synchronous:
        ask(primary, "alter system set synchronous_standby_names = 'b'")
        ask(primary, "select pg_reload_conf()")
        ready(primary, "select sync_state = 'sync' from pg_stat_replication")
    ask(primary, TABLES)
    ready(standby, "select to_regclass('account') is not null")

    argv = ["python3", "/usr/local/lib/client.py", str(WRITING_S), "a", "b", *words]
    history = course.clients({"c": argv}, timeout_s=3 * WRITING_S)
    (course.folder / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in history))
    primary.run("pkill", "-KILL", "postgres")
    ask(standby, "select pg_promote()")

    bank = course.check_bank([each for each in history if each["op"] == "read"], TOTAL)
    assert bank.holds, [*bank.wrong, *bank.overdrawn]
    found = course.check_set([each for each in history if each["op"] == "add"], ask(standby, "select * from written"))
    course.note(f"{found.acknowledged} writes were acknowledged, {len(found.lost)} of them are lost")
    course.require(found.acknowledged > 20, f"only {found.acknowledged} writes were acknowledged")
    assert found.holds, f"{len(found.lost)} of {found.acknowledged} acknowledged writes are lost"


def test_an_asynchronous_standby_has_all(lab, course):
    """It has not, as PostgreSQL's documentation says."""
    judged(lab, course, synchronous=False)


def test_a_synchronous_standby_has_all(lab, course):
    judged(lab, course, synchronous=True)


def test_a_synchronous_standby_has_all_though_clients_cancel(lab, course):
    """It has not: a commit that is cancelled while it waits for the standby is done, and answered so."""
    judged(lab, course, "cancel", synchronous=True)
