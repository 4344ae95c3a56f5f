# shellcheck shell=bash
# Calico's own programs, as its container calico/node runs them, without the container. VARIANT says when packets between
# hosts are encapsulated, and in what: always, by IP-in-IP; never; vxlan.

# shellcheck source=provision/overlays/etcd.sh
source "$OVERLAYS/etcd.sh"

readonly calico_network=172.31.0.0/16
readonly calico_templates=/etc/calico/confd
readonly calico_bird=/var/run/calico/bird.ctl
readonly calico_own=/run/minigts/calico
readonly endpoint_id=measure
# shellcheck disable=SC2034 # for those who source this
readonly endpoint=cali$endpoint_id

# lay_out_programs: the plugin goes by two names. calico-node is linked for its container's distribution, which has another
# name for a library that Debian has too.
lay_out_programs() {
  mkdir -p "$calico_own"
  ln -sf "$PROGRAMS/calico" "$calico_own/calico"
  ln -sf "$PROGRAMS/calico" "$calico_own/calico-ipam"
  ln -sf /usr/lib/*-linux-gnu/libpcap.so.0.8 "$calico_own/libpcap.so.1"
}

# note_settings: of the kernel's, those that Felix changes: whether connections' packets are counted, and whether the file
# system of programs for the kernel is mounted.
note_settings() {
  mountpoint -q /sys/fs/bpf || touch "$calico_own/mounts-bpf"
  [[ -e $calico_own/nf_conntrack_acct ]] || cp /proc/sys/net/netfilter/nf_conntrack_acct "$calico_own"
}

# settings: what Calico's programs read, a word each. Felix's rules go into nftables, since the hosts' full kernel has no
# match `rpfilter` for iptables.
settings() {
  local ipip=Never vxlan=Never backend=bird
  case $VARIANT in
  always) ipip=Always ;;
  vxlan) vxlan=Always backend=vxlan ;;
  esac
  printf '%s\n' \
    "PATH=$PROGRAMS:$OVERLAYS/calico-node/bin:$PATH" "LD_LIBRARY_PATH=$calico_own" \
    "DATASTORE_TYPE=etcdv3" "ETCD_ENDPOINTS=$etcd_url" "WAIT_FOR_DATASTORE=true" \
    "FELIX_DATASTORETYPE=etcdv3" "FELIX_ETCDENDPOINTS=$etcd_url" \
    "NODENAME=$HOST_NAME" "FELIX_FELIXHOSTNAME=$HOST_NAME" "IP=$HOST_ADDRESS" "IP6=none" \
    "CALICO_NETWORKING_BACKEND=$backend" "CALICO_IPV4POOL_CIDR=$calico_network" \
    "CALICO_IPV4POOL_IPIP=$ipip" "CALICO_IPV4POOL_VXLAN=$vxlan" \
    "FELIX_NFTABLESMODE=Enabled" "FELIX_IPTABLESBACKEND=NFT" "FELIX_IPV6SUPPORT=false" \
    "FELIX_IPINIPMTU=$OVERLAY_MTU" "FELIX_VXLANMTU=$OVERLAY_MTU" \
    "FELIX_HEALTHENABLED=true" "FELIX_USAGEREPORTINGENABLED=false" \
    "FELIX_LOGFILEPATH=none" "FELIX_LOGSEVERITYFILE=none" "FELIX_LOGSEVERITYSYS=none"
}

# calico COMMAND…: runs it with the settings.
# shellcheck disable=SC2046 # a word each
calico() { env $(settings) "$@"; }

# start_calico NAME COMMAND…: the same, as a daemon.
# shellcheck disable=SC2046 # a word each
start_calico() { start_daemon "$1" env $(settings) "${@:2}"; }

enter_node() {
  local step
  for step in "-startup" "-allocate-tunnel-addrs -allocate-tunnel-addrs-run-once"; do
    # shellcheck disable=SC2086 # words of a command
    calico calico-node $step >/tmp/calico-node.log 2>&1 ||
      fatal "calico-node $step: $(tail -n 5 /tmp/calico-node.log)"
  done
}

start_felix() {
  start_calico felix calico-node -felix
  wait_until 90 felix_is_ready || fatal "Felix does not become ready: $(tail -n 5 "$(daemon_log felix)")"
}

felix_is_ready() { curl -sf -o /dev/null http://localhost:9099/readiness; }

# confd writes BIRD's configuration out of the store, first once and then as it changes.
start_bgp() {
  mkdir -p "$calico_templates"/{conf.d,templates,config} "${calico_bird%/*}"
  cp "$PROGRAMS"/*.toml "$calico_templates/conf.d"
  cp "$PROGRAMS"/*.template "$calico_templates/templates"
  daemon_runs bird || calico calico-node -confd -confd-run-once >/tmp/calico-node.log 2>&1 ||
    fatal "confd: $(tail -n 5 /tmp/calico-node.log)"
  start_calico bird bird -R -s "$calico_bird" -d -c "$calico_templates/config/bird.cfg"
  start_calico confd calico-node -confd
}

# sessions: the number of hosts with which BGP is established.
sessions() { calico birdcl -s "$calico_bird" show protocols | grep -c 'BGP .* Established' || true; }

# call_plugin ADD|DEL PROCESS: Calico's CNI plugin, which attaches the network namespace of that process, with an address
# from Calico's IPAM.
call_plugin() {
  network | CNI_COMMAND=$1 CNI_CONTAINERID=$endpoint_id CNI_NETNS=/proc/$2/ns/net CNI_IFNAME=eth0 CNI_PATH=$calico_own \
    "$calico_own/calico"
}

# The label is what policies select by.
network() {
  jq -nc --arg host "$HOST_NAME" --arg etcd "$etcd_url" --argjson mtu "$OVERLAY_MTU" '{
    cniVersion: "1.0.0", name: "minigts", type: "calico", mtu: $mtu, nodename: $host, log_level: "warning",
    datastore_type: "etcdv3", etcd_endpoints: $etcd, ipam: {type: "calico-ipam"},
    args: {"org.apache.mesos": {network_info: {labels: {labels: [{key: "host", value: $host}]}}}}
  }'
}

# Felix has a chain for what goes to an endpoint, and one for what comes from it.
endpoint_has_rules() {
  nft list chain ip calico "filter-cali-tw-$endpoint" >/dev/null 2>&1 &&
    nft list chain ip calico "filter-cali-fw-$endpoint" >/dev/null 2>&1
}

# blocks: of addresses, which Calico's IPAM gave this host.
blocks() {
  etcd get --prefix --keys-only "/calico/ipam/v2/host/$HOST_NAME/ipv4/block/" | sed -n 's#.*/##; s#-#/#p' | paste -sd,
}

remove_what_calico_made() {
  local family
  for family in ip arp; do
    nft list tables "$family" | awk '$3 ~ /^calico/' | while read -r words; do nft delete "$words"; done
  done
  [[ ! -e $calico_own/mounts-bpf ]] || umount /sys/fs/bpf 2>/dev/null || true
  [[ ! -e $calico_own/nf_conntrack_acct ]] || cat "$calico_own/nf_conntrack_acct" >/proc/sys/net/netfilter/nf_conntrack_acct
  ip link delete vxlan.calico 2>/dev/null || true
  ip route flush root "$calico_network" || true
  rm -rf /etc/calico /var/{lib,log,run}/calico "$calico_own"
}
