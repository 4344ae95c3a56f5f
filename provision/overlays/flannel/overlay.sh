# shellcheck shell=bash
# The real flanneld; VARIANT is flannel's name for its backend. The hosts find each other in a store on the leader.

# shellcheck source=provision/overlays/etcd.sh
source "$OVERLAYS/etcd.sh"

readonly flannel_network=172.31.0.0/16
readonly subnet_file=/run/flannel/subnet.env
readonly underlay=underlay

install() {
  is_leader || return 0
  start_etcd
  publish_network
}

join() {
  start_flanneld
  start_docker_on_lease
}

start() {
  wait_until 60 every_host_has_lease || fatal "only these hosts have a lease: $(leases | paste -sd' ')"
  start_on_network bridge
}

# Prints LEASE too: this host's block and how long it holds.
verify() {
  local held
  prove_data_path
  held=$(lease)
  echo "LEASE=$held"
}

leave() {
  take_containers_away
  stop_docker
  stop_daemon flanneld
  stop_etcd
  remove_flannel_interfaces
}

publish_network() {
  etcd put /coreos.com/network/config "$(jq -nc --arg network "$flannel_network" --arg type "$VARIANT" \
    '{Network: $network, SubnetLen: 24, Backend: {Type: $type}}')" >/dev/null
}

start_flanneld() {
  local interface address
  choose_interface
  modprobe -a vxlan br_netfilter
  wait_until 60 has_lease || fatal "flanneld has no lease: $(tail -n 5 "$(daemon_log flanneld)")"
}

# flanneld takes a block by chance, and ends when another host has just taken the same.
has_lease() {
  [[ ! -s $subnet_file ]] || return 0
  start_daemon flanneld "$PROGRAMS/flanneld" -etcd-endpoints "$etcd_url" -iface "$interface" \
    -public-ip "$address" -ip-masq=false -iptables-forward-rules=false
  [[ -s $subnet_file ]]
}

# Sets `interface` and `address`, by which flanneld sends.
choose_interface() {
  interface=$underlay
  address=$HOST_ADDRESS
  case $VARIANT in
  host-gw) use_only_link ;;
  ipip)
    modprobe ipip
    make_underlay_interface
    ;;
  udp)
    make_tunnel_device
    make_underlay_interface
    ;;
  *) make_underlay_interface ;;
  esac
}

# Plain routes through the neighbour: it must be one.
use_only_link() {
  ((${#LINK_INTERFACES[@]} == 1 && ${#PEER_NAMES[@]} == 1)) ||
    fatal "flannel's host-gw backend needs all hosts on one segment: two hosts with one link"
  interface=${LINK_INTERFACES[0]}
  address=${LINK_ADDRESSES[0]}
}

# flanneld wants one interface to take its address and MTU from, and a host may have several links. So it gets one that
# stands for all of them; the packets themselves take the host's routes.
make_underlay_interface() {
  modprobe dummy
  [[ -e /sys/class/net/$underlay ]] || ip link add "$underlay" type dummy
  ip link set "$underlay" mtu "$LINK_MTU" up
  ip address replace "$HOST_ADDRESS/32" dev "$underlay"
}

start_docker_on_lease() {
  local FLANNEL_SUBNET FLANNEL_MTU
  # shellcheck disable=SC1090
  source "$subnet_file"
  start_docker --ip-masq=false "--bip=$FLANNEL_SUBNET" "--mtu=$FLANNEL_MTU"
}

# leases: a line for each host, 172.31.5.0-24.
leases() { etcd get --prefix --keys-only /coreos.com/network/subnets/ | sed -n 's#.*/##p'; }

every_host_has_lease() { (($(leases | wc -l) >= $(host_count))); }

lease() {
  local FLANNEL_SUBNET id
  # shellcheck disable=SC1090
  source "$subnet_file"
  id=$(etcd get --prefix --write-out=json /coreos.com/network/subnets/ |
    jq -r --arg block "${FLANNEL_SUBNET%.*}.0-" '.kvs[] | select(.key | @base64d | contains("/" + $block)) | .lease')
  etcd lease timetolive "$(printf %x "$id")" --write-out=json |
    jq -er --arg block "$FLANNEL_SUBNET" 'select(.ttl > 0) | "\($block) for \(."granted-ttl") s"' ||
    fatal "this host's lease on $FLANNEL_SUBNET has run out"
}

remove_flannel_interfaces() {
  local device
  for device in flannel.1 flannel.ipip flannel-wg docker0 "$underlay"; do
    ip link delete "$device" 2>/dev/null || true
  done
  ip route flush root "$flannel_network" || true
  modprobe -r ipip || true
  rm -rf /run/flannel
}
