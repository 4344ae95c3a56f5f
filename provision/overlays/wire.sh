# shellcheck shell=bash
# Sourced by phase.sh: what the links really carry when the container sends to PEER, another host's container.
#
# Environment: ADDRESS, MTU, PEER; ENTER (process id in the container) unless the tools run on the host itself; LARGEST
# where a link is a black hole: the bytes of the largest packet of the container that passes.

# Larger than whatever else crosses the links meanwhile, and different from what the other hosts send for their own proof.
payload_bytes=$((1000 + HOST_INDEX % 100 * 3))
((payload_bytes + 48 <= ${LARGEST:-65535})) || payload_bytes=$((LARGEST - 48))
readonly payload_bytes
readonly own_packets='udp or ip proto 4 or esp or icmp or icmp6'
readonly echoes=5
readonly echo_s=$((PATIENCE_S > 2 ? PATIENCE_S : 2))

# prove_data_path: packets cross the links as overlay.yaml has it.
prove_data_path() {
  prove_encapsulation "$ENCAPSULATION"
  prove_mtu
  [[ $PROVE_ENCRYPTION == false ]] || prove_encryption
}

# prove_encapsulation EXPECTED: by capture on the links. Prints ENCAPSULATION.
prove_encapsulation() {
  local seen
  seen=$(seen_on_links)
  [[ $seen == "$1" ]] || fatal "what goes to $PEER crosses the link as '$seen', not as '$1':
$(cat /tmp/verify.capture)"
  echo "ENCAPSULATION=$seen"
}

# prove_mtu: a datagram as large as MTU, or as LARGEST, gets through in one piece, and one larger than MTU does not leave.
prove_mtu() {
  local headers=28 largest=${LARGEST:-$MTU}
  [[ $PEER != *:* ]] || headers=48
  in_container ping -c 3 -i 0.2 -W "$echo_s" -q -M "do" -s "$((largest - headers))" "$PEER" >/tmp/verify.ping 2>&1 ||
    fatal "datagrams of $largest bytes do not reach $PEER: $(tail -n 3 /tmp/verify.ping)"
  ! in_container ping -c 1 -W "$echo_s" -q -M "do" -s "$((MTU - headers + 1))" "$PEER" >/tmp/verify.ping 2>&1 ||
    fatal "a datagram larger than the MTU of $MTU bytes reaches $PEER in one piece"
}

# prove_encryption: the container sends words that nobody finds on the links, while as many packets cross them. Prints
# ENCRYPTED=yes.
prove_encryption() {
  local words='minigts?' link path
  local -a captures=()
  rm -f /tmp/verify.*.pcap
  # Also by those that lead to no host of the network: one between its hosts may be in none.
  for path in /sys/class/net/eth[0-9]*; do
    link=${path##*/}
    timeout 30 tcpdump -i "$link" -n -U -Q out -w "/tmp/verify.$link.pcap" "greater $payload_bytes" \
      2>"/tmp/verify.$link.tcpdump" &
    captures+=($!)
    wait_until 10 grep -q 'listening on' "/tmp/verify.$link.tcpdump"
  done
  in_container ping -c "$echoes" -i 0.2 -W "$echo_s" -q -p "$(printf %s "$words" | od -An -tx1 | tr -d ' ')" \
    -s "$payload_bytes" "$PEER" >/tmp/verify.ping || fatal "the container does not reach $PEER"
  wait_until 5 large_enough /tmp/verify.*.pcap || fatal "no packets of the container's size cross the links"
  kill "${captures[@]}"
  wait "${captures[@]}" || true
  ! grep -qaF "$words$words" /tmp/verify.*.pcap || fatal "what goes to $PEER can be read on the link"
  echo ENCRYPTED=yes
}

large_enough() { (($(cat "$@" | wc -c) >= echoes * payload_bytes)); }

in_container() {
  if [[ -n ${ENTER:-} ]]; then nsenter --target "$ENTER" --net "$@"; else "$@"; fi
}

# The ways in which this host's own packets to PEER leave by its links, a word each: vxlan, esp, udp, wireguard, ipip,
# none; over IPv6 vxlan6, wireguard6, ipv6.
seen_on_links() {
  local capture
  timeout 30 tcpdump -i any -n -q -l -Q out "greater $payload_bytes and ($own_packets)" \
    >/tmp/verify.capture 2>/tmp/verify.tcpdump &
  capture=$!
  wait_until 10 grep -q 'listening on' /tmp/verify.tcpdump || fatal "$(cat /tmp/verify.tcpdump)"
  in_container ping -c "$echoes" -i 0.2 -W "$echo_s" -q -s "$payload_bytes" "$PEER" >/tmp/verify.ping ||
    fatal "the container does not reach $PEER: $(tail -n 2 /tmp/verify.ping)"
  wait_until 5 enough_captured || true
  kill "$capture"
  wait "$capture" || true
  on_links | sort -u | paste -sd+
}

enough_captured() { (($(on_links | wc -l) >= echoes)); }

# What is inside cannot be read where it is a frame, encrypted, or in a datagram of a program's own: there the size
# tells. WireGuard pads to 16 bytes and adds 16 in front and 16 behind.
# A line of the capture: 12:00:00.1 eth1  Out IP 10.255.0.1.44321 > 10.255.0.2.4789: UDP, length 1050
on_links() {
  awk -v peer="$PEER" -v bytes="$payload_bytes" '
    $2 !~ /^eth/ { next }
    / IP6 .* > [0-9a-f:]+\.4789: / { if ($NF == bytes + 50) print "vxlan6"; next }
    / IP6 .* > [0-9a-f:]+\.51820: / { if ($NF == int((bytes + 28 + 15) / 16) * 16 + 32) print "wireguard6"; next }
    / IP6 / { if (index($0, "> " peer ": ICMP6, echo request")) print "ipv6"; next }
    / > [0-9.]+\.(4789|8472|6784): / { if ($NF == bytes + 50) print "vxlan"; next }
    / > [0-9.]+: ESP\(/ { if ($NF >= bytes + 58 && $NF <= bytes + 110) print "esp"; next }
    / > [0-9.]+\.8285: / { if ($NF == bytes + 28) print "udp"; next }
    / > [0-9.]+\.(655|6783): / { if ($NF >= bytes + 46 && $NF <= bytes + 110) print "udp"; next }
    / > [0-9.]+\.51820: / { if ($NF == int((bytes + 28 + 15) / 16) * 16 + 32) print "wireguard"; next }
    !index($0, "> " peer ": ICMP echo request") { next }
    /: IP [0-9.]+ > / { print "ipip"; next }
    { print "none" }' /tmp/verify.capture
}
