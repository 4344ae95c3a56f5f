import pytest


@pytest.fixture
def visit(host, run):
    """A visitor on host bra asks the web server, at its host's port."""
    url = f"http://{host('ams').address}:8080/"
    return lambda: run("bra", "curl", "-sS", "--fail-with-body", "--max-time", "10", url).stdout


def test_visits_are_counted(visit):
    first, second = (int(visit().removeprefix("visit ")) for _ in range(2))
    assert second == first + 1


def test_the_store_has_the_count(visit, container):
    visits = visit().removeprefix("visit ").strip()
    assert container("store").run("redis-cli", "get", "visits").stdout.strip() == visits


def test_the_overlay_fills_the_links(container):
    said = container("meter.mil").run("iperf", "-c", "meter.ams", "-t", "5", "-y", "C", timeout_s=20).stdout
    mbit = int(said.split(",")[-1]) / 1e6
    assert 40 < mbit < 50
