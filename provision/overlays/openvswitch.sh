# shellcheck shell=bash
# Sourced, after lib.sh, by whatever needs Open vSwitch on this machine: its daemons, with the kernel's data path.

readonly switch_database=/run/minigts/ovs.db

switch_answers() { ovs-vsctl --timeout=1 show >/dev/null 2>&1; }

# It may be slow to answer on a machine that has much to do.
switch_runs() {
  local id
  id=$(cat /run/openvswitch/ovs-vswitchd.pid 2>/dev/null) && [[ -d /proc/$id ]]
}

start_switch() {
  switch_answers && return
  modprobe openvswitch
  # Before Linux 7.3 a tunnel's port has a module of its own; since then it is a network device of `vxlan`.
  modprobe -q vport_vxlan || modprobe vxlan
  mkdir -p /run/openvswitch "${switch_database%/*}"
  [[ -f $switch_database ]] || ovsdb-tool create "$switch_database" /usr/share/openvswitch/vswitch.ovsschema
  ovsdb-server "$switch_database" --remote=punix:/run/openvswitch/db.sock --pidfile --detach --no-chdir \
    --log-file=/var/log/ovsdb-server.log
  ovs-vsctl --no-wait init
  ovs-vswitchd --pidfile --detach --no-chdir --log-file=/var/log/ovs-vswitchd.log
  wait_until 20 switch_answers || fatal "Open vSwitch did not start: $(tail -n 5 /var/log/ovs-vswitchd.log)"
}

# stop_switch BRIDGE: with its data path, for the kernel's part outlives its daemon otherwise.
stop_switch() {
  switch_runs || return 0
  wait_until 20 switch_answers || fatal "Open vSwitch does not answer: $(tail -n 5 /var/log/ovs-vswitchd.log)"
  ovs-vsctl --if-exists del-br "$1"
  ovs-appctl -t ovs-vswitchd exit --cleanup
  ovs-appctl -t ovsdb-server exit
  wait_until 10 switch_gone || fatal "Open vSwitch does not end"
  rm -f "$switch_database"
  modprobe -qr vport_vxlan || true
  modprobe -r openvswitch || true
}

switch_gone() { [[ ! -e /run/openvswitch/ovs-vswitchd.pid && ! -e /run/openvswitch/ovsdb-server.pid ]]; }
