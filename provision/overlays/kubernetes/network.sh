# shellcheck shell=bash
# Sourced by overlay.sh: the network that joins the pods of all nodes.

# shellcheck source=provision/overlays/kubernetes/images.sh
source "$OVERLAYS/kubernetes/images.sh"
# shellcheck source=provision/overlays/bird.sh
source "$OVERLAYS/bird.sh"

readonly pods_bridge=cni0

start_network() {
  mkdir -p "$network_settings"
  network_configuration >"$network_settings/10-minigts.conflist"
  spread_block_by_ospf "eth*"
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

stop_network() {
  stop_bird
  ip link delete "$pods_bridge" 2>/dev/null || true
  rm -rf /run/minigts/addresses
}
