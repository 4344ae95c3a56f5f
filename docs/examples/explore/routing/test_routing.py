"""Routers whose links flap find each other again: no packet is lost, and none goes in circles, for longer after the
last change of the network than the timers of their protocol allow."""

import json
from bisect import bisect_right
from dataclasses import dataclass, field

FLAPPING_S, CALM_S, ARRIVES_S, BOOT_S = 65, 25, 1.0, 3.0
ALLOWED_S = {
    # RouterDeadInterval 4, one retransmission by RxmtInterval 5 (RFC 2328, appendix C.3), MinLSInterval 5 (appendix B),
    # two ticks of BIRD's of 1 each, to tell of a change and to compute routes, and 2 for packets on slow links.
    "ospf": 4 + 5 + 5 + 2 * 1 + 2,
    # HoldTime 3 (RFC 4271, sections 4.2 and 6.5), BIRD's longest wait after an error 4 (IdleHoldTimer, section 8.1.1),
    # its delay of a connection 1, ConnectRetryTimer 2 (section 8.1.1), and 2 for packets on slow links.
    "bgp": 3 + 4 + 1 + 2 + 2,
}
LOG = "/root/probe.txt"
NS_PER_S = 1e9


@dataclass
class Network:
    """What of the network carries packets, by what has happened to it: from each of `moments` on, in seconds of the
    lab's clock, the links and hosts of `dead` do not."""

    ends: dict
    moments: list = field(default_factory=lambda: [float("-inf")])
    dead: list = field(default_factory=lambda: [frozenset()])

    def change(self, at_s, name, dead):
        self.moments.append(at_s)
        self.dead.append(self.dead[-1] | {name} if dead else self.dead[-1] - {name})

    def follow(self, happened):
        for event in happened:
            at_s, name = event.get("lab_s"), event.get("link") or event.get("host")
            if event["event"] == "set" and event["how"] in ("loss 100 %", "as declared"):
                if (name in self.dead[-1]) != (event["how"] == "loss 100 %"):
                    self.change(at_s, name, event["how"] == "loss 100 %")
            elif event["event"] in ("killed", "started"):
                self.change(at_s, name, event["event"] == "killed")
                if event["event"] == "started":
                    self.change(at_s + BOOT_S, name, False)

    def state(self, at_s):
        """What is dead at that moment, since when, and until when."""
        number = bisect_right(self.moments, at_s) - 1
        until_s = self.moments[number + 1] if number + 1 < len(self.moments) else float("inf")
        return self.dead[number], self.moments[number], until_s

    def joined(self, one, other, dead):
        """Whether there is a way between the two hosts."""
        seen, left = set(), [one]
        while left:
            host = left.pop()
            if host in dead or host in seen:
                continue
            seen.add(host)
            left += [end for name, ends in self.ends.items() if name not in dead and host in ends for end in ends]
        return other in seen


@dataclass
class Lost:
    """A packet that has not come, or went in circles."""

    at_s: float
    source: str
    target: str
    after_s: float
    """How long after the last change it was sent."""
    loop: bool


def probes(lab, begin_s):
    """What the probes have logged: packets sent, by sender, target and time; those that came; and those that looped."""
    host = lab.hosts[0]
    ahead_s = float(host.run("date", "+%s.%N").stdout) - lab.now_s  # to some 10 ms
    sent, came, looped = {}, set(), set()
    for each in lab.hosts:
        for line in each.run("cat", LOG).stdout.splitlines():
            word, other, sent_ns, *_ = line.split()
            if word == "got":
                came.add((other, each.name, sent_ns))
            elif word == "loop":
                looped.add((each.name, other, sent_ns))
            elif word == "sent" and int(sent_ns) / NS_PER_S - ahead_s >= begin_s:
                sent[each.name, other, sent_ns] = int(sent_ns) / NS_PER_S - ahead_s
    return sent, came, looped


def judge(network, sent, came, looped, until_s):
    """The lost packets between hosts to which a way was left all the time, and how many such packets there were in all
    that were sent longer than `allowed_s` after the last change."""
    judged, lost = [], []
    for packet, at_s in sorted(sent.items(), key=lambda each: each[1]):
        source, target, _ = packet
        dead, since_s, next_s = network.state(at_s)
        if at_s + ARRIVES_S > min(until_s, next_s) or not network.joined(source, target, dead):
            continue
        after_s = round(at_s - since_s, 3)
        judged.append(after_s)
        if packet not in came:
            lost.append(Lost(at_s, source, target, after_s, packet in looped))
    return judged, lost


def test_the_network_heals_as_fast_as_its_timers_allow(lab, course):
    begin_s, allowed_s = course.now_s, ALLOWED_S[lab.plan.routing]
    course.sleep(FLAPPING_S + CALM_S)
    network = Network({link.name: link.ends for link in lab.plan.links})
    network.follow(course.happened)
    sent, came, looped = probes(lab, begin_s)
    judged, lost = judge(network, sent, came, looped, course.now_s)
    late = [each for each in lost if each.after_s > allowed_s]
    after = sum(each > allowed_s for each in judged)
    latest_s = max((each.after_s for each in lost), default=0.0)
    loops_s = max((each.after_s for each in lost if each.loop), default=0.0)
    course.note(
        f"{len(network.moments) - 1} changes, {len(judged)} packets with a way, of which {len(lost)} are lost, "
        f"the latest {latest_s:.1f} s after a change; {sum(each.loop for each in lost)} of these in circles, "
        f"the latest {loops_s:.1f} s; {after} packets were sent later than {allowed_s} s"
    )
    (course.folder / "lost.jsonl").write_text("".join(json.dumps(vars(each)) + "\n" for each in lost))
    assert not [event for event in course.happened if event["event"].endswith(" failed")]
    course.require(after > 100, f"only {after} packets")
    assert not late, f"{len(late)} packets were lost longer than {allowed_s} s after the last change"
