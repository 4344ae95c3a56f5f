# shellcheck shell=bash
# Makes this machine a switch of the lab. bash reads it after lib.sh and overlays/openvswitch.sh, and then runs one of
#
#   make_switch      makes a learning bridge over all links, with its own address
#   ask_controller   makes the bridge forward only by its OpenFlow controller's rules; if the controller is the user's, as
#                    soon as it listens
#   wait_for_tree    waits until the bridge's ports have the roles and states that the plan has for them
#   show_tree        prints the root, and each port with its role and state
#
# A second run of any changes nothing. Variables:
#   MINIGTS_PORTS        the interfaces of its links
#   MINIGTS_ADDRESS      its address on the segment, with prefix length
#   MINIGTS_VLANS        if its links have VLANs, its address in each instead, as in `10=10.20.0.3/24 20=10.20.1.3/24`
#   MINIGTS_VLAN_MACS    and its hardware address there, as in `10=06:6d:0a:14:00:03`
#   MINIGTS_ACCESS       the VLAN of each port with untagged frames, as in `eth1=10 eth2=20`
#   MINIGTS_TRUNKS       the VLANs that tagged frames may have at each other port, as in `eth3=10,20`
#   MINIGTS_MTU          the segment's MTU in bytes
#   MINIGTS_RING         `yes` if it is in a ring that the user's controller decides on
#   MINIGTS_UNFLOODED    and the ports on which it floods nothing, until the controller says otherwise
#   MINIGTS_NEIGHBOUR    and the controller's address and hardware address, if known, as in `10.20.0.3=02:6d:67:00:02:01`
#   MINIGTS_TREE         the protocol of its spanning tree, stp or rstp; empty for none
#   MINIGTS_PRIORITY     and its priority there
#   MINIGTS_MAC          and its address there
#   MINIGTS_COSTS        and the cost of each port between switches, as in `eth1=2000 eth2=200000`
#   MINIGTS_CONVERGED    and the lines of show_tree that are waited for
#   MINIGTS_PATIENCE     and for how many seconds
#   MINIGTS_CONTROLLER   ADDRESS:PORT of the controller; on 127.0.0.1 the built-in one is started there; empty for none

readonly bridge=br0
readonly controller_pid=/run/minigts/controller.pid

make_switch() {
  local port pair mode=standalone
  local -a commands=() tree=()
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
  tree_commands
  # In a ring frames would circle without a controller. All in one transaction, so that none ever does.
  [[ -z $MINIGTS_RING ]] || mode=secure
  ovs-vsctl --may-exist add-br "$bridge" -- set-fail-mode "$bridge" "$mode" "${commands[@]}" "${tree[@]}"
  for port in $MINIGTS_UNFLOODED; do ovs-ofctl mod-port "$bridge" "$port" no-flood; done
  sysctl -qw net.ipv4.ip_forward=0
  for pair in ${MINIGTS_VLANS:-=$MINIGTS_ADDRESS}; do
    port=${pair%%=*}
    port=${port:+vlan$port}
    ip address replace "${pair#*=}" dev "${port:-$bridge}"
    ip link set dev "${port:-$bridge}" mtu "$MINIGTS_MTU" up
  done
  ip link set dev "$bridge" mtu "$MINIGTS_MTU" up
}

# Puts the commands for its spanning tree into the array `tree`. All that decides on the tree is said, so that it is the
# plan's: identifiers, the ports' numbers, and costs, since the kernel knows no speed of a port.
tree_commands() {
  local port pair system=$MINIGTS_TREE-system-id number=0
  tree=()
  [[ -n $MINIGTS_TREE ]] || return 0
  [[ $MINIGTS_TREE == stp ]] || system=rstp-address
  tree=(-- set bridge "$bridge" "${MINIGTS_TREE}_enable=true" "other_config:$system=\"$MINIGTS_MAC\""
    "other_config:$MINIGTS_TREE-priority=$MINIGTS_PRIORITY")
  for port in $MINIGTS_PORTS; do
    number=$((number + 1))
    tree+=(-- set port "$port" "other_config:$MINIGTS_TREE-port-num=$number")
  done
  for pair in $MINIGTS_COSTS; do
    tree+=(-- set port "${pair%%=*}" "other_config:$MINIGTS_TREE-path-cost=${pair#*=}")
  done
}

# Prints `root PRIORITY ADDRESS`, then `PORT ROLE STATE` for each port.
show_tree() {
  ovs-appctl "$MINIGTS_TREE/show" "$bridge" | awk '
    $1 == "Bridge" { roots = 0 }
    $1 == "Root" { roots = 1 }
    roots && $1 == "stp-priority" { priority = $2 }
    roots && $1 == "stp-system-id" { print "root", priority, $2 }
    $1 ~ /^eth/ && NF == 5 { print $1, tolower($2), tolower($3) }'
}

wait_for_tree() { wait_until "$MINIGTS_PATIENCE" tree_converged || show_tree; }

tree_converged() {
  local shown
  shown=$(show_tree)
  while IFS= read -r line; do
    [[ $'\n'$shown$'\n' == *$'\n'$line$'\n'* ]] || return 1
  done <<<"$MINIGTS_CONVERGED"
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
  *)
    if [[ -n $MINIGTS_RING ]]; then
      ask_over_the_ring
    else
      ask_when_it_listens "${MINIGTS_CONTROLLER%:*}" "${MINIGTS_CONTROLLER##*:}"
    fi
    ;;
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

# Open vSwitch itself forwards the control connections of its own and other switches (in-band.c), but no other switch's
# question for the controller's hardware address. What it floods for them goes over the ports that flood.
ask_over_the_ring() {
  if [[ -n $MINIGTS_NEIGHBOUR ]]; then
    ip neighbour replace "${MINIGTS_NEIGHBOUR%%=*}" lladdr "${MINIGTS_NEIGHBOUR#*=}" dev "$bridge" nud permanent
  fi
  [[ $(ovs-vsctl get-controller "$bridge") != "tcp:$MINIGTS_CONTROLLER" ]] || return 0
  ovs-vsctl set-controller "$bridge" "tcp:$MINIGTS_CONTROLLER" -- set controller "$bridge" max_backoff=1000
}

controller_answers() { [[ $(ovs-vsctl get controller "$bridge" is_connected) == true ]]; }
