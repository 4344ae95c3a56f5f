# shellcheck shell=bash
# Calico's data path: this host's block of addresses is announced to every other host by BGP. VARIANT says when packets to
# other hosts are encapsulated: always, cross-subnet, never.

# shellcheck source=provision/overlays/bgp.sh
source "$OVERLAYS/bgp.sh"

join() {
  [[ $VARIANT == never ]] || make_ipip_tunnel "$(calico_address 0)"
  announce_block "$(calico_block)"
}

# Behind a route of its own, when there is a way to every host's block.
start() {
  local address
  address=$(calico_address 1)
  run_measuring_container none
  plumb_container_by_route "$address"
  wait_for_routes
  describe_measuring_container "$address"
}

# With cross-subnet it depends on where the peer is.
verify() {
  prove_encapsulation "$(encapsulation_to "${PEER:?}")"
  prove_mtu
}

leave() {
  take_containers_away
  stop_bird
  remove_tunnel
  stop_docker
}

# A block of 64 addresses, as Calico gives out.
calico_block() { echo "$(calico_address 0)/26"; }

# calico_address NUMBER: in this host's block.
calico_address() { echo "172.31.$((HOST_INDEX / 4)).$((HOST_INDEX % 4 * 64 + $1))"; }

# encapsulated NAME: whether packets to that host are.
encapsulated() {
  case $VARIANT in
  always) true ;;
  cross-subnet) ! is_neighbour "$1" ;;
  never) false ;;
  esac
}

encapsulation_to() { if ip route get "$1" | grep "dev $tunnel" >/dev/null; then echo ipip; else echo none; fi; }
