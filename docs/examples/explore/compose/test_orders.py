"""Whether the shop keeps each order that it has answered with 201."""

PORT, ORDERING_S, SETTLING_S = 8080, 40, 15


def test_no_order_is_lost(lab, course):
    url = f"http://{lab.host('a').address}:{PORT}"
    visitor = ["python3", "/usr/local/lib/visitor.py", url, str(ORDERING_S)]
    history = course.clients({"c": visitor}, timeout_s=3 * ORDERING_S)
    course.sleep(SETTLING_S)
    there = lab.container("store").run("redis-cli", "smembers", "orders").stdout.split()
    found = course.check_set(history, there)
    course.note(f"{found.acknowledged} orders were acknowledged, {len(found.lost)} of them are lost")
    assert found.acknowledged > ORDERING_S
    assert not found.lost, f"{len(found.lost)} of {found.acknowledged} acknowledged orders are lost"
