"""First tests of a lab of your own, the one of NAME.yaml.

    minigts test --minigts NAME.yaml TEST_FILE

It brings the lab up before the first test, unless it is up, and takes down what it has brought up. docs/testing.md
has everything that a test can ask for.
"""


def test_every_host_has_the_name_of_the_topology(run):
    assert run("left", "hostname").stdout == "left\n"


def test_a_further_hop_adds_its_own_delay_and_no_more(rtt):
    near, far = rtt("left", "middle"), rtt("left", "right")
    assert abs(far.median_ms - near.median_ms - 20) < 0.5


def test_tcp_fills_the_links(throughput):
    assert throughput("left", "right").reaches_ceiling


def test_without_its_link_a_host_is_gone(link, rtt):
    link("middle", "right").cut()  # it is whole again after the test
    assert rtt("left", "right").loss_percent == 100
