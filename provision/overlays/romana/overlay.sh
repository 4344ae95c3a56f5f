# shellcheck shell=bash
# Plain routes: this host's block of addresses is announced to its neighbours by OSPF.

# shellcheck source=provision/overlays/bird.sh
source "$OVERLAYS/bird.sh"

join() { spread_block_by_ospf "eth*"; }

# Behind a route of its own, when there is a way to every host's block.
start() {
  local address=172.31.$HOST_INDEX.2
  run_measuring_container none
  plumb_container_by_route "$address"
  wait_for_routes
  describe_measuring_container "$address"
}

leave() {
  take_containers_away
  stop_bird
  stop_docker
}
