"""Whether PostgreSQL's transactions have one order, at two of its isolation levels."""

WRITING_S = 10
TABLE = """
drop table if exists list;
create table list (key text primary key, items text[] not null);
insert into list values ('x', '{}'), ('y', '{}'), ('z', '{}');
"""


def judged(lab, course, level):
    server = lab.host("a")
    server.run("psql", "-h", "127.0.0.1", "-U", "postgres", "-qc", TABLE)
    argv = ["python3", "/usr/local/lib/transactions.py", str(WRITING_S), "a", level]
    history = course.clients({"b": argv, "c": argv}, timeout_s=6 * WRITING_S)
    course.write_edn(history)
    found = course.check_transactions(history)
    course.note(f"{found.transactions} transactions of {len(history)} were done; {len(found.anomalies)} anomalies")
    course.require(found.transactions > 100, f"only {found.transactions} transactions were done")
    for anomaly in found.anomalies:
        course.note(f"{anomaly.kind}: {anomaly.words}")
    assert found.holds, ", ".join(sorted({anomaly.kind for anomaly in found.anomalies}))


def test_serializable_transactions_have_an_order(lab, course):
    judged(lab, course, "serializable")


def test_repeatable_reads_have_an_order(lab, course):
    """They have not: PostgreSQL's documentation says that they may need one that is none of the serial ones."""
    judged(lab, course, "repeatable read")
