# shellcheck shell=bash
# Weave's own router, which looks for its neighbours. VARIANT says the path between them: fast, sleeve, sleeve-encrypted.

# shellcheck source=provision/overlays/weave/router.sh
source "$OVERLAYS/weave/router.sh"

join() { start_router; }

# When every neighbour is connected by the path that was asked for: a connection begins as sleeve and becomes fast when
# its heartbeats have come through.
start() {
  local address=172.31.$((HOST_INDEX / 250)).$((HOST_INDEX % 250 + 1))
  run_measuring_container none
  attach_container "$address"
  wait_until 60 every_connection_on_its_path || fatal "not every connection is $(wanted_path): $(connections)"
  describe_measuring_container "$address"
}

# Prints CONNECTIONS too: the path that each uses, fastdp or sleeve.
verify() {
  every_connection_on_its_path || fatal "not every connection is $(wanted_path): $(connections)"
  prove_data_path
  echo "CONNECTIONS=$(paths | sort | paste -sd,)"
}

leave() {
  take_containers_away
  stop_router
  stop_docker
}

# As Weave attaches one. Without checksums of their own, packets that the router takes up in user space would arrive broken.
attach_container() {
  plumb_container_into_segment "$1/16" "$weave_bridge"
  enter_container ethtool -K eth0 tx off >/dev/null
}
