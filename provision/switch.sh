# shellcheck shell=bash
# Makes this machine a switch of the lab. Read by bash behind lib.sh and overlays/openvswitch.sh; then one of
#
#   make_switch      a bridge over all links that learns by itself, with an address of the switch's own
#   ask_controller   from now on the bridge forwards what its OpenFlow controller says, and nothing else; from when that
#                    listens, if it is the user's own
#
# A second run of either changes nothing. Variables:
#   MINIGTS_PORTS        interfaces of its links
#   MINIGTS_ADDRESS      its address on the segment, with prefix length
#   MINIGTS_VLANS        instead, where its links have VLANs: its address in each, as in `10=10.20.0.3/24 20=10.20.1.3/24`
#   MINIGTS_ACCESS       of those ports whose frames say no VLAN theirs, as in `eth1=10 eth2=20`
#   MINIGTS_TRUNKS       of the others those that their frames may say, as in `eth3=10,20`
#   MINIGTS_MTU          the segment's
#   MINIGTS_CONTROLLER   ADDRESS:PORT; on 127.0.0.1 the built-in controller is started there; or empty

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
  for pair in $MINIGTS_VLANS; do
    port=vlan${pair%%=*}
    commands+=(-- --may-exist add-port "$bridge" "$port" "tag=${pair%%=*}" -- set interface "$port" type=internal
      "mac=\"$(address_of_port "${pair#*=}")\"")
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

# address_of_port ADDRESS/PREFIX: a MAC for the switch's own port in a VLAN; else Open vSwitch draws one, another each time.
address_of_port() {
  local IFS=.
  # shellcheck disable=SC2046,SC2086 # an octet each
  printf '06:6d:%02x:%02x:%02x:%02x' ${1%/*}
}

# Open vSwitch takes every queue off its ports that it did not put there, the links' rates among them, unless a port has
# this setting (ovs-vswitchd.conf.db(5), QoS type linux-noop). Prints its identity in the database.
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

# ask_when_it_listens ADDRESS PORT: a controller of the user's own may come later; until then the bridge learns by itself.
ask_when_it_listens() {
  [[ ! -e $controller_pid ]] || return 0
  # shellcheck disable=SC2016
  setsid bash -c '
    until (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; do sleep 0.5; done
    ovs-vsctl set-fail-mode "$0" secure -- set-controller "$0" "tcp:$1:$2"' "$bridge" "$1" "$2" &>/dev/null </dev/null &
  echo $! >"$controller_pid"
}

controller_answers() { [[ $(ovs-vsctl get controller "$bridge" is_connected) == true ]]; }
