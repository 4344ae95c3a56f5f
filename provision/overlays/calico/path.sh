# shellcheck shell=bash
# Sourced by this overlay's scripts: which way packets to another host's containers take.
#
# Environment: MINIGTS_VARIANT (when to use IP-in-IP: always, cross-subnet, never), MINIGTS_PEERS, MINIGTS_LINKS.

# shellcheck source=provision/overlays/tunnel.sh
source "$(dirname "${BASH_SOURCE[0]}")/../tunnel.sh"

readonly outer_header_bytes=20

# A block of 64 addresses, as Calico gives out.
calico_block() { echo "172.31.$((MINIGTS_INDEX / 4)).$((MINIGTS_INDEX % 4 * 64))/26"; }

# calico_address NUMBER: in this host's block.
calico_address() { echo "172.31.$((MINIGTS_INDEX / 4)).$((MINIGTS_INDEX % 4 * 64 + $1))"; }

calico_mtu() {
  if [[ $MINIGTS_VARIANT == never ]]; then
    echo "$MINIGTS_MTU"
  else
    echo $((MINIGTS_MTU - outer_header_bytes))
  fi
}

# encapsulated PEER: whether packets to that host are.
encapsulated() {
  case $MINIGTS_VARIANT in
  always) true ;;
  cross-subnet) ! on_segment "$1" ;;
  never) false ;;
  esac
}

# on_segment PEER: whether that host is the other end of one of this host's links.
on_segment() {
  local link neighbour
  for link in $MINIGTS_LINKS; do
    IFS=: read -r _ _ neighbour _ <<<"$link"
    [[ $(getent ahostsv4 "$neighbour" | awk '{ print $1; exit }') != "$1" ]] || return 0
  done
  return 1
}
