# shellcheck shell=bash
# Joins this host to its neighbours. Variant fast, in the kernel: a tunnel to each, and they tell each other by OSPF over
# the tunnels which containers lie behind them. The others, in user space: a router that does both.

# shellcheck source=provision/overlays/bird.sh
source "$OVERLAYS/bird.sh"
# shellcheck source=provision/overlays/mesh/segments.sh
source "$OVERLAYS/mesh/segments.sh"
# shellcheck source=provision/overlays/mesh/sleeve.sh
source "$OVERLAYS/mesh/sleeve.sh"

# Prints, on the leader, KEY, which the others' routers in user space have too.
join() {
  if [[ $VARIANT == fast ]]; then
    make_tunnels
    spread_block_by_ospf "mesh-*"
  else
    KEY=${KEY:-$(lab_key)}
    start_router "$(host_block)" "$routes"
    ! is_leader || echo "KEY=$KEY"
  fi
}

# Behind a route of its own, when there is a way to every host's block.
start() {
  local address=172.31.$HOST_INDEX.2
  run_measuring_container none
  plumb_container_by_route "$address"
  [[ $VARIANT != fast ]] || wait_for_routes
  describe_measuring_container "$address"
}

leave() {
  take_containers_away
  stop_bird
  remove_tunnels
  stop_router
  stop_docker
}
