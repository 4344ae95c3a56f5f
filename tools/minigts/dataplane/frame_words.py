"""Says in words what an Ethernet frame is, by its first bytes. Pure.

    ARP who-has 10.0.0.2 tell 10.0.0.1
    TCP 10.0.0.1:5001 > 10.0.0.2:40000 seq 17 ack 4 [S.] 1448 bytes
    VXLAN 4097 10.0.0.1 > 10.0.0.2: ICMP echo request 10.1.0.2 > 10.1.0.3 id 7 seq 3

Headers are as in RFC 826 (ARP), 791 and 8200 (IP), 9293 (TCP), 768 (UDP), 792 and 4443 (ICMP), 7348 (VXLAN), and IEEE
802.1Q. What is cut off or unknown is named by its numbers: nothing here fails, whatever the bytes.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address

VXLAN_PORTS = (4789, 8472)
"""The port of VXLAN by IANA, and the one that Linux takes by itself."""
DEEPEST = 4
"""How many frames within a frame are read."""
_ICMP = {0: "echo reply", 3: "unreachable", 5: "redirect", 8: "echo request", 11: "time exceeded"}
_ICMP6 = {
    1: "unreachable",
    2: "too big",
    3: "time exceeded",
    128: "echo request",
    129: "echo reply",
    133: "router solicitation",
    134: "router advertisement",
    135: "neighbour solicitation",
    136: "neighbour advertisement",
    143: "multicast listener report",
}
_FLAGS = ((0x02, "S"), (0x01, "F"), (0x04, "R"), (0x08, "P"), (0x10, "."), (0x20, "U"), (0x40, "E"), (0x80, "W"))
_HOP_BY_HOP, _TCP, _UDP, _ICMP_NUMBER, _ICMP6_NUMBER, _IN_IP, _GRE = 0, 6, 17, 1, 58, 4, 47


def frame_line(frame: bytes, depth: int = DEEPEST) -> str:
    """One line about a frame, of which the first bytes suffice."""
    try:
        return _ethernet(frame, depth)
    except (struct.error, IndexError, ValueError):
        return f"a frame that is cut off: {frame[:20].hex()}"


def _ethernet(frame: bytes, depth: int) -> str:
    kind, at, tag = _number(frame, 12), 14, ""
    if kind == 0x8100:
        tag, kind, at = f"VLAN {_number(frame, 14) & 0xFFF} ", _number(frame, 16), 18
    return tag + _network(kind, frame[at:], depth, frame)


def _network(kind: int, packet: bytes, depth: int, frame: bytes) -> str:
    if kind == 0x0800:
        return _ipv4(packet, depth)
    if kind == 0x86DD:
        return _ipv6(packet, depth)
    if kind == 0x0806:
        return _arp(packet)
    if kind < 0x0600:
        return f"802.3 {_mac(frame[6:12])} > {_mac(frame[:6])}"
    return f"type {kind:#06x} {_mac(frame[6:12])} > {_mac(frame[:6])}"


def _arp(packet: bytes) -> str:
    sender, target = IPv4Address(packet[14:18].ljust(4, b"\0")), IPv4Address(packet[24:28].ljust(4, b"\0"))
    if _number(packet, 6) == 1:
        return f"ARP who-has {target} tell {sender}"
    return f"ARP {sender} is-at {_mac(packet[8:14])}"


def _ipv4(packet: bytes, depth: int) -> str:
    header, length, part = (packet[0] & 15) * 4, _number(packet, 2), _number(packet, 6) & 0x1FFF
    source, target = IPv4Address(packet[12:16]), IPv4Address(packet[16:20])
    if part:
        return f"IP {source} > {target} id {_number(packet, 4)} fragment at {part * 8}"
    return _transport(packet[9], str(source), str(target), packet[header:], length - header, depth)


def _ipv6(packet: bytes, depth: int) -> str:
    source, target = IPv6Address(packet[8:24]), IPv6Address(packet[24:40])
    protocol, rest, length = packet[6], packet[40:], _number(packet, 4)
    if protocol == _HOP_BY_HOP:
        size = 8 + 8 * rest[1]
        protocol, rest, length = rest[0], rest[size:], length - size
    return _transport(protocol, str(source), str(target), rest, length, depth)


def _transport(protocol: int, source: str, target: str, segment: bytes, length: int, depth: int) -> str:
    if protocol == _TCP:
        return _tcp(source, target, segment, length)
    if protocol == _UDP:
        return _udp(source, target, segment, length, depth)
    if protocol in (_ICMP_NUMBER, _ICMP6_NUMBER):
        kinds, echoes = (_ICMP, (0, 8)) if protocol == _ICMP_NUMBER else (_ICMP6, (128, 129))
        return _icmp(kinds.get(segment[0], f"type {segment[0]}"), echoes, source, target, segment)
    if protocol == _IN_IP and depth:
        return f"IP in IP {source} > {target}: {_ipv4(segment, depth - 1)}"
    if protocol == _GRE and depth:
        return f"GRE {source} > {target}: {_network(_number(segment, 2), segment[4:], depth - 1, bytes(12))}"
    return f"IP protocol {protocol} {source} > {target} {length} bytes"


def _tcp(source: str, target: str, segment: bytes, length: int) -> str:
    first, second, seq, ack, offset, bits = struct.unpack_from("!HHIIBB", segment)
    flags = "".join(letter for bit, letter in _FLAGS if bits & bit)
    acked = f" ack {ack}" if bits & 0x10 else ""
    body = length - (offset >> 4) * 4
    return f"TCP {source}:{first} > {target}:{second} seq {seq}{acked} [{flags}] {body} bytes"


def _udp(source: str, target: str, segment: bytes, length: int, depth: int) -> str:
    first, second = struct.unpack_from("!HH", segment)
    if second in VXLAN_PORTS and len(segment) >= 30 and depth:
        network = int.from_bytes(segment[12:15], "big")
        return f"VXLAN {network} {source} > {target}: {frame_line(segment[16:], depth - 1)}"
    return f"UDP {source}:{first} > {target}:{second} {length - 8} bytes"


def _icmp(what: str, echoes: tuple[int, int], source: str, target: str, segment: bytes) -> str:
    number = ""
    if segment[0] in echoes and len(segment) >= 8:
        number = f" id {_number(segment, 4)} seq {_number(segment, 6)}"
    return f"ICMP {what} {source} > {target}{number}"


def _number(data: bytes, at: int) -> int:
    value: int = struct.unpack_from("!H", data, at)[0]
    return value


def _mac(data: bytes) -> str:
    return data.hex(":")
