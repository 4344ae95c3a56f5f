# shellcheck shell=bash
# Sourced by overlay.sh: the network that joins the pods of all nodes.

# shellcheck source=provision/overlays/kubernetes/bgp.sh
source "$OVERLAYS/kubernetes/bgp.sh"
# shellcheck source=provision/overlays/kubernetes/flannel.sh
source "$OVERLAYS/kubernetes/flannel.sh"
# shellcheck source=provision/overlays/kubernetes/calico.sh
source "$OVERLAYS/kubernetes/calico.sh"

readonly pods_bridge=cni0

start_network() {
  mkdir -p "$network_settings"
  network_configuration >"$network_settings/10-minigts.conflist"
  case $VARIANT in
  routes) spread_block_by_ospf "eth*" ;;
  flannel*) start_flanneld ;;
  calico) start_calico ;;
  esac
  masquerade_pods
}

# What a pod sends to a host is not encapsulated, but the answer to it would be. A node between the two would see one direction
# alone, and kube-proxy's rules drop what follows there (`--ctstate INVALID`). So the host sees the pod's node, as it does with
# flannel's own manifest (`--ip-masq`) and Calico's (`natOutgoing`). Plain routes are the same there and back.
masquerade_pods() {
  [[ $VARIANT != routes ]] || return 0
  nft -f - <<END
table ip minigts_pods
delete table ip minigts_pods
table ip minigts_pods {
  chain leaving {
    type nat hook postrouting priority srcnat + 10
    ip saddr $(host_block) ip daddr != { $pods, 224.0.0.0/4 } counter snat to $HOST_ADDRESS
  }
}
END
}

# By the plugins `bridge` and `host-local`: each pod has a veth in a bridge, and the next free address of this host's block.
# With Calico's data path it has a veth, and a route to it, of its own.
network_configuration() {
  local type=bridge
  [[ $VARIANT != calico ]] || type=ptp
  jq -nc --arg type "$type" --arg bridge "$pods_bridge" --arg block "$(host_block)" --argjson mtu "$OVERLAY_MTU" '{
    bridge: {type: $type, bridge: $bridge, isDefaultGateway: true, hairpinMode: true, mtu: $mtu},
    ptp: {type: $type, mtu: $mtu}
  }[$type] + {
    ipam: ({type: "host-local", dataDir: "/run/minigts/addresses", ranges: [[{subnet: $block}]]} +
      if $type == "ptp" then {routes: [{dst: "0.0.0.0/0"}]} else {} end)
  } | {cniVersion: "1.0.0", name: "minigts", plugins: [.]}'
}

# Until the block of every other host but ABSENT has a way; one for all of them where WireGuard sends by a pod's address.
network_ready() { wait_until $((60 * times)) every_block_has_a_way || fatal "only these blocks have a way: $(ways)"; }

every_block_has_a_way() {
  local -a absent
  read -ra absent <<<"${ABSENT:-}"
  local wanted=$((${#PEER_NAMES[@]} - ${#absent[@]}))
  [[ $VARIANT != flannel-wireguard ]] || wanted=1
  (($(ways | wc -l) >= wanted))
}

# Those to other hosts' blocks: neither that to this host's own, nor to one of its pods.
ways() { ip -4 route show root "$pods" | grep -v -e blackhole -e "dev $pods_bridge" -e 'dev veth'; }

stop_network() {
  stop_bird
  stop_flanneld
  [[ $VARIANT != calico ]] || remove_tunnel
  ip link delete "$pods_bridge" 2>/dev/null || true
  rm -rf /run/minigts/addresses
}
