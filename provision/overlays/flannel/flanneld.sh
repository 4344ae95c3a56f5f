# shellcheck shell=bash
# Sourced by this overlay's scripts: what flanneld is told, and what it says.
#
# Environment: MINIGTS_VARIANT (flannel's name for its backend), MINIGTS_ADDRESS, MINIGTS_LEADER,
# MINIGTS_HOSTS, MINIGTS_LINKS, MINIGTS_MTU, MINIGTS_PROGRAMS.

# shellcheck source=provision/overlays/etcd.sh
source "$(dirname "${BASH_SOURCE[0]}")/../etcd.sh"
# shellcheck source=provision/overlays/needs.sh
source "$(dirname "${BASH_SOURCE[0]}")/../needs.sh"

readonly flannel_network=172.31.0.0/16
readonly subnet_file=/run/flannel/subnet.env
readonly underlay=underlay

publish_network() {
  etcd put /coreos.com/network/config "$(jq -nc --arg network "$flannel_network" --arg type "$MINIGTS_VARIANT" \
    '{Network: $network, SubnetLen: 24, Backend: {Type: $type}}')" >/dev/null
}

# flanneld wants one interface to take its address and MTU from, and a host may have several links. So it gets one that
# stands for all of them; the packets themselves take the host's routes.
make_underlay_interface() {
  modprobe dummy
  [[ -e /sys/class/net/$underlay ]] || ip link add "$underlay" type dummy
  ip link set "$underlay" mtu "$MINIGTS_MTU" up
  ip address replace "$MINIGTS_ADDRESS/32" dev "$underlay"
}

# Plain routes through the neighbour: it must be one.
use_only_link() {
  local -a links
  read -ra links <<<"$MINIGTS_LINKS"
  ((${#links[@]} == 1 && $(wc -w <<<"$MINIGTS_HOSTS") == 2)) ||
    fatal "flannel's host-gw backend needs all hosts on one segment: two hosts with one link"
  IFS=: read -r interface address _ <<<"${links[0]}"
}

# Sets `interface` and `address`, by which flanneld sends.
choose_interface() {
  interface=$underlay
  address=$MINIGTS_ADDRESS
  case $MINIGTS_VARIANT in
  host-gw) use_only_link ;;
  ipip)
    modprobe ipip
    make_underlay_interface
    ;;
  udp)
    make_tunnel_device
    make_underlay_interface
    ;;
  wireguard)
    need_modules wireguard
    make_underlay_interface
    ;;
  *) make_underlay_interface ;;
  esac
}

start_flanneld() {
  local interface address
  choose_interface
  modprobe -a vxlan br_netfilter
  start_daemon flanneld "$MINIGTS_PROGRAMS/flanneld" -etcd-endpoints "$etcd_url" -iface "$interface" \
    -public-ip "$address" -ip-masq=false -iptables-forward-rules=false
  wait_until 60 test -s "$subnet_file" || fatal "flanneld has no lease: $(tail -n 5 "$(daemon_log flanneld)")"
}

# leases: a line for each host, 172.31.5.0-24.
leases() { etcd get --prefix --keys-only /coreos.com/network/subnets/ | sed -n 's#.*/##p'; }

every_host_has_lease() { (($(leases | wc -l) >= $(wc -w <<<"$MINIGTS_HOSTS"))); }

remove_flannel_interfaces() {
  local device
  for device in flannel.1 flannel.ipip flannel-wg docker0 "$underlay"; do
    ip link delete "$device" 2>/dev/null || true
  done
  ip route flush root "$flannel_network" || true
  modprobe -r ipip || true
  rm -rf /run/flannel
}
