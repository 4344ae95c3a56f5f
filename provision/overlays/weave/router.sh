# shellcheck shell=bash
# Weave's own router, as its command `weave launch` starts it, without a container around it.

# shellcheck source=provision/overlays/daemons.sh
source "$OVERLAYS/daemons.sh"

readonly weave_data=/run/minigts/weave
readonly weave_control=127.0.0.1:6784
readonly weave_bridge=weave
readonly weave_datapath=datapath

# use_iptables: this host's own, whose rules are then noted as they are before the router adds to them; or its stand-in. A
# list of no rules proves nothing: only a chain that can be made does.
use_iptables() {
  local before
  before=$(nft list ruleset 2>/dev/null) || true
  if iptables -w -t nat -N MINIGTS-PROBE 2>/dev/null; then
    iptables -w -t nat -X MINIGTS-PROBE
    [[ -e $weave_data/rules ]] || echo "$before" >"$weave_data/rules"
  else
    PATH=$OVERLAYS/weave/bin:$PATH
  fi
}

# The router leaves its rules behind when it ends.
restore_rules() {
  [[ ! -e $weave_data/rules ]] || { echo "flush ruleset" && cat "$weave_data/rules"; } | nft -f -
}

# Every host is told of its neighbours only; what lies behind them it learns.
start_router() {
  local -a options=(--port 6783 --nickname "$HOST_NAME" --name "$(peer_name)" --mtu "$OVERLAY_MTU" --no-dns
  --docker-api '' --http-addr "$weave_control" --weave-bridge "$weave_bridge" --datapath "$weave_datapath"
  --db-prefix "$weave_data/db")
  [[ $VARIANT == fast ]] || options+=(--no-fastdp)
  [[ $VARIANT != *encrypted ]] || options+=(--password minigts)
  mkdir -p "$weave_data"
  # The router makes a dummy interface for a moment, to set its bridge's MTU.
  modprobe -a openvswitch bridge veth dummy
  [[ $VARIANT != fast ]] || modprobe vport_vxlan ||
    fatal "Weave's fast data path needs the kernel's module vport_vxlan, which Linux 7.3 and later do not have; weave-sleeve does not"
  use_iptables
  # Where it runs it leaves a mark, by which the next one takes itself for the same, started again.
  (cd "$weave_data" && CHECKPOINT_DISABLE=1 start_daemon weaver "$PROGRAMS/weaver" "${options[@]}" "${LINK_PEER_ADDRESSES[@]}")
  wait_until 60 router_settled || true
  router_answers || fatal "Weave's router did not start: $(tail -n 5 "$(daemon_log weaver)")"
}

peer_name() { printf '7a:00:00:00:%02x:%02x' $((HOST_INDEX / 256)) $((HOST_INDEX % 256)); }

router_answers() { curl -sf -o /dev/null "http://$weave_control/status"; }

# It answers, or will never do so.
router_settled() { router_answers || ! daemon_runs weaver; }

# A line for each connection, as `weave status connections` shows it:
# -> 10.20.0.2:6783        established fastdp 7a:00:00:00:00:01(bra) mtu=1410
connections() { curl -sf "http://$weave_control/status/connections"; }

# paths: the word for each connection's data path: fastdp, sleeve; or the state it is in, when it has none yet.
paths() { connections | awk '{ print $3 == "established" ? ($4 == "encrypted" ? $5 : $4) : $3 }'; }

wanted_path() { [[ $VARIANT == fast ]] && echo fastdp || echo sleeve; }

# every_connection_on_its_path: to every neighbour one, by the way that was asked for.
every_connection_on_its_path() {
  local found
  found=$(paths | grep -cx "$(wanted_path)") || true
  ((found >= ${#LINK_PEERS[@]}))
}

stop_router() {
  local device
  stop_daemon weaver
  restore_rules
  for device in vethwe-bridge vethwe-pcap "$weave_bridge"; do
    ip link delete "$device" 2>/dev/null || true
  done
  [[ ! -e /sys/class/net/$weave_datapath ]] || ovs-dpctl del-dp "$weave_datapath"
  rm -rf "$weave_data"
  modprobe -qr vport_vxlan || true
  modprobe -r openvswitch || true
}
