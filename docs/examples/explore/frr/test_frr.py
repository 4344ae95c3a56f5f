"""Whether FRR's static routes are there again when the link that was down is up."""

FLAPPING_S, SETTLING_S = 40, 15
FAR = "198.51.100.1"


def test_the_routes_come_back(lab, course):
    router = lab.host("r1")
    course.sleep(FLAPPING_S + SETTLING_S)
    kernel = router.run("ip", "route", "show", "proto", "static").stdout.split("\n")
    for line in filter(None, kernel):
        course.note(f"the kernel has {line.strip()}")
    zebra = router.run("vtysh", "-c", "show ip route 198.51.100.0/24").stdout
    course.note("FRR says that 198.51.100.0/24 is " + ("installed" if "via 203.0.113.1" in zebra else "gone"))
    assert router.run("ping", "-c", "3", "-i", "0.2", "-W", "1", FAR, check=False).code == 0, f"{FAR} does not answer"
