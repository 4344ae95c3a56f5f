# shellcheck shell=bash
# Makes this machine a switch of the lab. bash reads it after lib.sh and overlays/openvswitch.sh, and then runs one of
#
#   make_switch      makes a learning bridge over all links, with its own address
#   ask_controller   makes the bridge forward only by its OpenFlow controller's rules; if the controller is the user's, as
#                    soon as it listens
#
# A second run of either changes nothing. Variables:
#   MINIGTS_PORTS        the interfaces of its links
#   MINIGTS_ADDRESS      its address on the segment, with prefix length
#   MINIGTS_VLANS        if its links have VLANs, its address in each instead, as in `10=10.20.0.3/24 20=10.20.1.3/24`
#   MINIGTS_VLAN_MACS    and its hardware address there, as in `10=06:6d:0a:14:00:03`
#   MINIGTS_ACCESS       the VLAN of each port with untagged frames, as in `eth1=10 eth2=20`
#   MINIGTS_TRUNKS       the VLANs that tagged frames may have at each other port, as in `eth3=10,20`
#   MINIGTS_MTU          the segment's MTU in bytes
#   MINIGTS_CONTROLLER   ADDRESS:PORT of the controller; on 127.0.0.1 the built-in one is started there; empty for none

readonly bridge=br0
readonly controller_pid=/run/minigts/controller.pid

make_switch() {
  local port pair
  local -a commands=()
  start_switch
  for port in $MINIGTS_PORTS; do
    commands+=(-- --may-exist add-port "$bridge" "$port" -- set port "$port" "qos=$(untouched_queues)")
  done
  for pair in $MINIGTS_ACCESS; do commands+=(-- set port "${pair%%=*}" vlan_mode=access "tag=${pair#*=}"); done
  for pair in $MINIGTS_TRUNKS; do commands+=(-- set port "${pair%%=*}" vlan_mode=trunk "trunks=${pair#*=}"); done
  for pair in $MINIGTS_VLAN_MACS; do
    port=vlan${pair%%=*}
    commands+=(-- --may-exist add-port "$bridge" "$port" "tag=${pair%%=*}" -- set interface "$port" type=internal
      "mac=\"${pair#*=}\"")
  done
  ovs-vsctl --may-exist add-br "$bridge" -- set-fail-mode "$bridge" standalone "${commands[@]}"
  sysctl -qw net.ipv4.ip_forward=0
  for pair in ${MINIGTS_VLANS:-=$MINIGTS_ADDRESS}; do
    port=${pair%%=*}
    port=${port:+vlan$port}
    ip address replace "${pair#*=}" dev "${port:-$bridge}"
    ip link set dev "${port:-$bridge}" mtu "$MINIGTS_MTU" up
  done
  ip link set dev "$bridge" mtu "$MINIGTS_MTU" up
}

# Prints the database's id of a QoS setting of type linux-noop (ovs-vswitchd.conf.db(5)). Without it Open vSwitch removes
# every qdisc that it did not set from its ports, also those for the links' rates.
untouched_queues() {
  local known
  known=$(ovs-vsctl --bare --columns=_uuid find qos type=linux-noop)
  if [[ -n $known ]]; then echo "${known%%$'\n'*}"; else ovs-vsctl create qos type=linux-noop; fi
}

ask_controller() {
  case $MINIGTS_CONTROLLER in
  '') ;;
  127.0.0.1:*)
    start_controller "${MINIGTS_CONTROLLER##*:}"
    ovs-vsctl set-fail-mode "$bridge" secure -- set-controller "$bridge" "tcp:$MINIGTS_CONTROLLER" \
      -- set controller "$bridge" connection_mode=out-of-band
    wait_until 20 controller_answers || fatal "the built-in controller does not answer the switch"
    ;;
  *) ask_when_it_listens "${MINIGTS_CONTROLLER%:*}" "${MINIGTS_CONTROLLER##*:}" ;;
  esac
}

start_controller() {
  [[ ! -e $controller_pid ]] || return 0
  ovs-testcontroller --detach --no-chdir --pidfile="$controller_pid" "ptcp:$1:127.0.0.1"
}

# ask_when_it_listens ADDRESS PORT: the user may start the controller later; until then the bridge learns by itself.
ask_when_it_listens() {
  [[ ! -e $controller_pid ]] || return 0
  # shellcheck disable=SC2016
  setsid bash -c '
    until (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; do sleep 0.5; done
    ovs-vsctl set-fail-mode "$0" secure -- set-controller "$0" "tcp:$1:$2"' "$bridge" "$1" "$2" &>/dev/null </dev/null &
  echo $! >"$controller_pid"
}

controller_answers() { [[ $(ovs-vsctl get controller "$bridge" is_connected) == true ]]; }
