"""The rate of a fast link in virtual time, by a train of frames (Jain and Routhier, *Packet Trains*, 1986).

Full frames that are sent at the same moment leave a link one after the other, each after the time that the rate gives
it. So the distance between the replies to echo requests shows the rate of the slower direction. A train of a few
hundred frames shows it, where TCP would send hundreds of thousands, each of which takes some 10 us of the processor.
"""

from __future__ import annotations

from minigts.dataplane.round_trip import ICMP_HEADER_BYTES
from minigts.fidelity.certificate import CertificateRow, rate_row
from minigts.fidelity.sample import FAST_MBIT
from minigts.lab import Lab, calibration
from minigts.tools.cpu_bound import is_modelled
from minigts.topology.frames import ETHERNET_HEADER_BYTES, IP_HEADER_BYTES, TAG_BYTES
from minigts.topology.plan.elements import Link, Path

FARTHEST_MS = 1500.0
"""The longest round trip of a link that a train measures: the probe waits for 2 s for the last replies."""
MOST_FRAMES = 200
"""The most frames of a train: a port of a kernel holds 256."""
LEAST_FRAMES = 4


def measures(lab: Lab, link: Link, path: Path) -> bool:
    """Whether a train measures the link, which is `path`: in virtual time, if both directions have the same rate above
    FAST_MBIT, lose nothing and keep the order, and no modelled processor is the limit."""
    there, back = (way.rate_mbit for way in link.ways)
    fast = there is not None and there == back and there > FAST_MBIT
    plain = (
        not link.lossy and lab.plan.keeps_order(path) and lab.plan.is_filled(path) and not is_modelled(lab.plan, path)
    )
    return lab.plan.time == "virtual" and fast and plain and link.rtt_ms <= FARTHEST_MS


def row(lab: Lab, link: Link) -> CertificateRow:
    """The certificate's row of a link that a train measures. Raises what `probe` raises."""
    declared_mbit = link.ways[0].rate_mbit or 0
    return rate_row(lab.plan, link.name, declared_mbit, *_rate_mbit(lab, link), judged=True, quantity="rate")


def _rate_mbit(lab: Lab, link: Link) -> tuple[float | None, str]:
    """The measured rate in Mbit/s of whole frames, and how long the train was; or None, and why."""
    source = link.ends[0]
    mtu = lab.plan.mtu_of(link)
    frame_bytes = mtu + ETHERNET_HEADER_BYTES + (TAG_BYTES if link.vlans else 0)
    queue_bytes = min(way.queue_bytes or 0 for way in lab.plan.directions(link))
    frames = min(MOST_FRAMES, queue_bytes // frame_bytes)
    if frames < LEAST_FRAMES:
        return None, f"a queue of {queue_bytes} bytes holds no train of {LEAST_FRAMES} frames"
    payload_bytes = mtu - IP_HEADER_BYTES[lab.plan.family] - ICMP_HEADER_BYTES
    address = lab.plan.far_address(link)
    found = calibration.probe(lab.provider, source, address, count=frames, interval_s=0, size_bytes=payload_bytes)
    if len(found.rtts_ms) < frames:
        return None, f"{frames - len(found.rtts_ms)} of {frames} frames did not come back"
    took_ms = max(found.rtts_ms) - min(found.rtts_ms)
    return round((frames - 1) * frame_bytes * 8 / (took_ms * 1000), 4), f"by a train of {frames} frames"
