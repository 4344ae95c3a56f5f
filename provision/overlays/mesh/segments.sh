# shellcheck shell=bash
# Sourced by this overlay's scripts: one VXLAN tunnel for each segment, to the neighbour there.

readonly first_vni=5000

# make_tunnels: on each link, from this end's address to the peer's. The numbers come from the link's, so that both
# ends agree without asking.
make_tunnels() {
  local link port own peer number
  modprobe vxlan
  for link in "${!LINK_INTERFACES[@]}"; do
    port=${LINK_INTERFACES[link]} own=${LINK_ADDRESSES[link]} peer=${LINK_PEER_ADDRESSES[link]} number=${LINK_NUMBERS[link]}
    [[ ! -e /sys/class/net/mesh-$port ]] || continue
    ip link add "mesh-$port" mtu "$OVERLAY_MTU" type vxlan id "$((first_vni + number))" dev "$port" local "$own" \
      remote "$peer" dstport 4789 nolearning
    ip address add "$(tunnel_address "$own" "$peer" "$number")/31" dev "mesh-$port"
    ip link set "mesh-$port" up
  done
}

# A /31 for each link; the end with the lower address of the segment has the lower one.
tunnel_address() {
  local own=$1 peer=$2 number=$3 host
  host=$((number * 2))
  is_lower "$own" "$peer" || host=$((host + 1))
  echo "100.64.$((host / 256)).$((host % 256))"
}

# is_lower OWN PEER: of a segment's two ends, the one with the lower address.
is_lower() { [[ $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

remove_tunnels() {
  local device
  for device in /sys/class/net/mesh-*; do
    [[ ! -e $device ]] || ip link delete "${device##*/}"
  done
}
