# shellcheck shell=bash
# Sourced by network.sh: flanneld. It finds the other nodes, and their blocks, by the API server. VARIANT is `flannel`, or
# that with the name of another backend than vxlan: flannel-host-gw, flannel-wireguard.

# shellcheck source=provision/overlays/kubernetes/images.sh
source "$OVERLAYS/kubernetes/images.sh"

readonly cluster=/etc/kubernetes
readonly pods=172.31.0.0/16
readonly underlay=underlay
readonly flannel=/run/minigts/flannel

# FLANNEL_TOKEN: of flanneld's account.
start_flanneld() {
  local backend=vxlan interface=$underlay address=$HOST_ADDRESS
  [[ $VARIANT == flannel ]] || backend=${VARIANT#flannel-}
  modprobe -a dummy vxlan
  if [[ $backend == host-gw ]]; then choose_segment; else make_underlay; fi
  mkdir -p "$flannel"
  jq -nc --arg network "$pods" --arg backend "$backend" '{Network: $network, Backend: {Type: $backend}}' \
    >"$flannel/network.json"
  credentials flannel "$FLANNEL_TOKEN" >"$cluster/flannel.conf"
  start_daemon flanneld env "NODE_NAME=$HOST_NAME" "${settled[@]}" "$PROGRAMS/flanneld" -kube-subnet-mgr \
    -kubeconfig-file "$cluster/flannel.conf" -net-config-path "$flannel/network.json" -iface "$interface" \
    -public-ip "$address" -subnet-file "$flannel/subnet.env" -ip-masq=false -iptables-forward-rules=false
}

# One interface, by which flanneld sends over all links: the packets themselves take the host's routes.
make_underlay() {
  [[ -e /sys/class/net/$underlay ]] || ip link add "$underlay" type dummy
  ip link set "$underlay" mtu "$LINK_MTU" up
  ip address replace "$HOST_ADDRESS/32" dev "$underlay"
}

# Sets `interface` and `address`: a segment with every other host, which `one_segment` in overlay.yaml asks for.
choose_segment() {
  local link
  for link in "${!LINK_INTERFACES[@]}"; do
    interface=${LINK_INTERFACES[link]}
    address=${LINK_ADDRESSES[link]}
    (($(printf '%s\n' "${LINK_INTERFACES[@]}" | grep -cFx "$interface") < ${#PEER_NAMES[@]})) || return 0
  done
}

stop_flanneld() {
  local device
  stop_daemon flanneld
  for device in flannel.1 flannel-wg "$underlay"; do ip link delete "$device" 2>/dev/null || true; done
  [[ $VARIANT != flannel-host-gw ]] || ip route flush root "$pods"
  rm -rf "$flannel"
}
