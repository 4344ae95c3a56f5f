# shellcheck shell=bash
# Calico itself. A host is made a node as the start of Calico's own container does it: it is entered in the store, with
# the pool of addresses where there is none yet, gets its tunnel's address, and then Calico's daemons are started.

# shellcheck source=provision/overlays/tunnel.sh
source "$OVERLAYS/tunnel.sh"
# shellcheck source=provision/overlays/calico-node/node.sh
source "$OVERLAYS/calico-node/node.sh"
# shellcheck source=provision/overlays/calico-node/policy.sh
source "$OVERLAYS/calico-node/policy.sh"

install() {
  modprobe -a ipip vxlan
  lay_out_programs
  note_settings
  start_docker --ip-masq=false --bridge=none
  ! is_leader || start_etcd
}

join() {
  daemon_runs felix || enter_node
  start_felix
  [[ $VARIANT == vxlan ]] || start_bgp
}

# Calico's plugin attaches the container.
start() {
  local process address
  give_gateway_a_way
  run_measuring_container none
  process=$(container_process)
  # One that was there before this host was started again gives its address back.
  call_plugin DEL "$process" >/dev/null
  address=$(call_plugin ADD "$process" | jq -er '.ips[0].address')
  wait_until 60 endpoint_has_rules || fatal "Felix makes no rules for $endpoint: $(tail -n 5 "$(daemon_log felix)")"
  describe_measuring_container "${address%/*}"
}

# Prints BLOCK, the block of addresses that Calico's IPAM gave this host; ENDPOINT, the container's interface, for which
# Felix has made rules; SESSIONS, how many other hosts BIRD speaks BGP with.
verify() {
  prove_data_path
  endpoint_has_rules || fatal "Felix has no rules for $endpoint"
  echo "BLOCK=$(blocks)"
  echo "ENDPOINT=$endpoint"
  [[ $VARIANT == vxlan ]] || echo "SESSIONS=$(sessions)"
}

leave() {
  take_containers_away
  stop_daemon confd
  stop_daemon bird
  stop_daemon felix
  remove_what_calico_made
  remove_tunnel
  stop_etcd
  stop_docker
}
