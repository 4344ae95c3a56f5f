# shellcheck shell=bash
# Sourced by overlay.sh: the network that joins the pods of all nodes.

# shellcheck source=provision/overlays/kubernetes/images.sh
source "$OVERLAYS/kubernetes/images.sh"
# shellcheck source=provision/overlays/bird.sh
source "$OVERLAYS/bird.sh"

readonly cluster=/etc/kubernetes
readonly pods_bridge=cni0
readonly pods=172.31.0.0/16
readonly underlay=underlay
readonly flannel=/run/minigts/flannel

# FLANNEL_TOKEN: of flanneld's account, where VARIANT is flannel.
start_network() {
  mkdir -p "$network_settings"
  network_configuration >"$network_settings/10-minigts.conflist"
  case $VARIANT in
  routes) spread_block_by_ospf "eth*" ;;
  flannel) start_flanneld ;;
  esac
}

# By the plugins `bridge` and `host-local`: each pod has a veth in a bridge, and the next free address of this host's block.
network_configuration() {
  jq -nc --arg bridge "$pods_bridge" --arg block "$(host_block)" --argjson mtu "$OVERLAY_MTU" '{
    cniVersion: "1.0.0", name: "minigts", plugins: [{
      type: "bridge", bridge: $bridge, isDefaultGateway: true, hairpinMode: true, mtu: $mtu,
      ipam: {type: "host-local", dataDir: "/run/minigts/addresses", ranges: [[{subnet: $block}]]}
    }]
  }'
}

# It finds the other nodes, and their blocks, by the API server.
start_flanneld() {
  modprobe -a dummy vxlan
  make_underlay
  mkdir -p "$flannel"
  jq -nc --arg network "$pods" '{Network: $network, Backend: {Type: "vxlan"}}' >"$flannel/network.json"
  credentials flannel "$FLANNEL_TOKEN" >"$cluster/flannel.conf"
  start_daemon flanneld env "NODE_NAME=$HOST_NAME" "${settled[@]}" "$PROGRAMS/flanneld" -kube-subnet-mgr \
    -kubeconfig-file "$cluster/flannel.conf" -net-config-path "$flannel/network.json" -iface "$underlay" \
    -public-ip "$HOST_ADDRESS" -subnet-file "$flannel/subnet.env" -ip-masq=false -iptables-forward-rules=false
}

# One interface, by which flanneld sends over all links: the packets themselves take the host's routes.
make_underlay() {
  [[ -e /sys/class/net/$underlay ]] || ip link add "$underlay" type dummy
  ip link set "$underlay" mtu "$LINK_MTU" up
  ip address replace "$HOST_ADDRESS/32" dev "$underlay"
}

# Until every other host's block has a way.
network_ready() { wait_until 60 every_block_has_a_way || fatal "only these blocks have a way: $(ways)"; }

every_block_has_a_way() { (($(ways | wc -l) >= ${#PEER_NAMES[@]})); }

ways() { ip -4 route show root "$pods" | grep -v -e blackhole -e "dev $pods_bridge"; }

stop_network() {
  local device
  stop_bird
  stop_daemon flanneld
  for device in "$pods_bridge" flannel.1 "$underlay"; do ip link delete "$device" 2>/dev/null || true; done
  rm -rf /run/minigts/addresses "$flannel"
}
