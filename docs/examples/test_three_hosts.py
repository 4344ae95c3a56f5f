def test_every_host_has_a_name_of_its_own(run):
    assert run("left", "hostname").stdout == "left\n"


def test_latency_adds_up(rtt):
    segments_ms = rtt("left", "middle").median_ms + rtt("middle", "right").median_ms
    assert abs(rtt("left", "right").median_ms - segments_ms) < 0.5


def test_containers_are_as_near_as_their_hosts(rtt):
    assert rtt("left", "right", containers=True).as_expected


def test_tcp_fills_the_links(throughput):
    assert throughput("left", "right").reaches_ceiling


def test_a_cut_link_loses_everything(link, rtt):
    link("middle", "right").cut()
    assert rtt("left", "right").loss_percent == 100
