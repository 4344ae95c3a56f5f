# shellcheck shell=bash
# Containers on an Open vSwitch bridge, which has its kernel data path and a VXLAN tunnel to every other host.

# shellcheck source=provision/overlays/openvswitch.sh
source "$OVERLAYS/openvswitch.sh"

readonly bridge=br-overlay
address_block=0

install() {
  start_docker --ip-masq=false --bridge=none
  start_switch
}

join() {
  ovs-vsctl --may-exist add-br "$bridge" -- set-fail-mode "$bridge" standalone
  ip link set "$bridge" up
  make_tunnels
}

start() {
  local address=172.31.$((address_block + HOST_INDEX / 250)).$((HOST_INDEX % 250 + 1))
  run_measuring_container none
  plumb_container_into_segment "$address/16"
  # shellcheck disable=SC2154 # docker.sh names it
  ovs-vsctl --if-exists del-port "$container_port" -- add-port "$bridge" "$container_port"
  describe_measuring_container "$address"
}

second() {
  address_block=128
  name_second_container
  start
}

# Prints DATAPATH too.
verify() {
  prove_data_path
  prove_kernel_datapath
}

leave() {
  take_containers_away
  stop_switch "$bridge"
  stop_docker
}

# Every host has a tunnel to every other, and protected ports do not forward to each other: so a frame crosses one
# tunnel, and there are no loops.
make_tunnels() {
  local number
  local -a commands=()
  for number in "${!PEER_ADDRESSES[@]}"; do
    commands+=(-- --may-exist add-port "$bridge" "tunnel$number"
      -- set port "tunnel$number" protected=true
      -- set interface "tunnel$number" type=vxlan
      "options:local_ip=$HOST_ADDRESS" "options:remote_ip=${PEER_ADDRESSES[number]}" options:key=4097)
  done
  ovs-vsctl --no-wait "${commands[@]}"
}

# The kernel has the flow for what was just sent: it does not come to the daemon packet by packet.
prove_kernel_datapath() {
  ovs-appctl dpctl/show | grep '^system@' >/dev/null || fatal "the switch forwards outside the kernel"
  ovs-appctl dpctl/dump-flows type=ovs 2>/dev/null | grep 'tunnel(' >/dev/null || fatal "the kernel has no flow for the tunnels"
  echo DATAPATH=kernel
}
