# shellcheck shell=bash
# Sourced by this overlay's scripts: a VXLAN tunnel to each neighbour on each segment.

readonly first_vni=5000
readonly most_hosts=250   # of an overlay
readonly most_segments=32 # that two hosts share

# make_tunnels: from this end's address to the neighbour's. A device is named for its interface, and behind a switch those
# to all neighbours but the first for their numbers, too.
make_tunnels() {
  local link port own peer number device
  modprobe vxlan
  for link in "${!LINK_INTERFACES[@]}"; do
    port=${LINK_INTERFACES[link]} own=${LINK_ADDRESSES[link]} peer=${LINK_PEER_ADDRESSES[link]}
    device=mesh-$port
    ((link == 0)) || [[ $port != "${LINK_INTERFACES[link - 1]}" ]] || device+=-$(index_of "${LINK_PEERS[link]}")
    [[ ! -e /sys/class/net/$device ]] || continue
    number=$(tunnel_number "$link")
    ip link add "$device" mtu "$OVERLAY_MTU" type vxlan id "$((first_vni + number))" dev "$port" local "$own" \
      remote "$peer" dstport 4789 nolearning
    ip address add "$(tunnel_address "$own" "$peer" "$number")/31" dev "$device"
    ip link set "$device" up
  done
}

# tunnel_number LINK: both ends agree on it without asking. It counts the pairs of hosts, and for each the segments that
# the two share, by their addresses.
tunnel_number() {
  local link before=0 peer lower
  peer=$(index_of "${LINK_PEERS[$1]}")
  lower=$((HOST_INDEX < peer ? HOST_INDEX : peer))
  for link in "${!LINK_PEERS[@]}"; do
    ((link == $1)) || [[ ${LINK_PEERS[link]} != "${LINK_PEERS[$1]}" ]] ||
      ! is_lower "${LINK_ADDRESSES[link]}" "${LINK_ADDRESSES[$1]}" || before=$((before + 1))
  done
  ((before < most_segments)) || fatal "$HOST_NAME and ${LINK_PEERS[$1]} share more than $most_segments segments"
  echo $(((lower * most_hosts + HOST_INDEX + peer - lower) * most_segments + before))
}

# tunnel_address OWN PEER NUMBER: of a /31 for each tunnel; the end with the lower address of the segment has the lower one.
tunnel_address() {
  local own=$1 peer=$2 number=$3 host
  host=$((number * 2))
  is_lower "$own" "$peer" || host=$((host + 1))
  echo "100.$((64 + host / 65536)).$((host / 256 % 256)).$((host % 256))"
}

# index_of HOST: its number, this host's or another's of the network.
index_of() {
  local number=$HOST_INDEX peer
  for peer in "${!PEER_NAMES[@]}"; do
    [[ ${PEER_NAMES[peer]} != "$1" ]] || number=${PEER_INDEXES[peer]}
  done
  echo "$number"
}

# is_lower OWN PEER: of a segment's two ends, the one with the lower address.
is_lower() { [[ $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

remove_tunnels() {
  local device
  for device in /sys/class/net/mesh-*; do
    [[ ! -e $device ]] || ip link delete "${device##*/}"
  done
}
