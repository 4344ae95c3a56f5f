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
#   MINIGTS_MTU          the segment's
#   MINIGTS_CONTROLLER   ADDRESS:PORT; on 127.0.0.1 the built-in controller is started there; or empty

readonly bridge=br0
readonly controller_pid=/run/minigts/controller.pid

make_switch() {
  local port
  local -a commands=()
  start_switch
  for port in $MINIGTS_PORTS; do
    commands+=(-- --may-exist add-port "$bridge" "$port" -- set port "$port" "qos=$(untouched_queues)")
  done
  ovs-vsctl --may-exist add-br "$bridge" -- set-fail-mode "$bridge" standalone "${commands[@]}"
  ip address replace "$MINIGTS_ADDRESS" dev "$bridge"
  ip link set dev "$bridge" mtu "$MINIGTS_MTU" up
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
