# shellcheck shell=bash
# Sourced by overlay.sh: what makes a host a node: kubelet and kube-proxy. As kubeadm sets them up, but for their being
# daemons of the host.

# shellcheck source=provision/overlays/kubernetes/network.sh
source "$OVERLAYS/kubernetes/network.sh"

readonly authority=$cluster/pki/ca.crt
readonly kubelet_root=/var/lib/kubelet
readonly etcd_root=/var/lib/minigts/etcd
readonly volumes=/var/lib/minigts/volumes # as controller.py has it
readonly kubelet_credentials=$cluster/kubelet.conf
readonly server=https://$LEADER_ADDRESS:6443
readonly services=172.30.0.0/16
readonly name_server=172.30.0.10 # kubeadm's choice: the tenth address
readonly policies_credentials=$cluster/policies.conf
readonly noted_rules=/run/minigts/rules.before
readonly noted_settings=/run/minigts/settings.before
readonly processor=/run/minigts/cpuinfo
readonly kubernetes_programs=(kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl kubeadm)

# note_rules: nftables' own before kube-proxy adds to them.
note_rules() { [[ -e $noted_rules ]] || nft list ruleset >"$noted_rules"; }

restore_rules() {
  { echo 'flush ruleset' && cat "$noted_rules"; } | nft -f -
  rm -f "$noted_rules"
}

# note_settings: the kernel's own, of connections and of virtual servers, before kube-proxy sets others.
note_settings() {
  local -a names=(netfilter/nf_conntrack_{buckets,max,tcp_timeout_close_wait,tcp_timeout_established})
  modprobe nf_conntrack
  [[ $PROXY_MODE != ipvs ]] || names+=(ipv4/vs/{conntrack,expire_nodest_conn,expire_quiescent_template})
  [[ -e $noted_settings ]] || (cd /proc/sys/net && grep . "${names[@]}") >"$noted_settings"
}

restore_settings() {
  local name value
  while IFS=: read -r name value; do echo "$value" >"/proc/sys/net/$name"; done <"$noted_settings"
  rm -f "$noted_settings"
}

# One file, by the name of each program that is in it.
install_programs() {
  local name
  for name in "${kubernetes_programs[@]}"; do ln -sf "$PROGRAMS/kubernetes" "/usr/local/bin/$name"; done
}

# The kubelet counts processors by the lines `cpu MHz`, which User-Mode Linux does not have.
name_processors_speed() {
  grep -q '^cpu MHz' /proc/cpuinfo && return
  sed '/^model name/a cpu MHz\t\t: 1000.000' /proc/cpuinfo >"$processor"
  mount --bind "$processor" /proc/cpuinfo
}

# take_invitation, on a host that joins: the cluster's certificate, and credentials by which the kubelet asks for its own.
# Those that it has may be of a cluster whose control plane is gone.
take_invitation() {
  if [[ -e $authority ]]; then
    [[ $(base64 --wrap 0 "$authority") != "$CLUSTER_CA" ]] || return 0
    forget_cluster
  fi
  mkdir -p "$cluster/pki"
  base64 -d <<<"$CLUSTER_CA" >"$authority"
  credentials bootstrap "$BOOTSTRAP_TOKEN" >"$cluster/bootstrap-kubelet.conf"
}

# credentials NAME TOKEN: a kubeconfig.
credentials() {
  cat <<END
apiVersion: v1
kind: Config
clusters: [{name: kubernetes, cluster: {certificate-authority: $authority, server: "$server"}}]
users: [{name: $1, user: {token: "$2"}}]
contexts: [{name: $1, context: {cluster: kubernetes, user: $1}}]
current-context: $1
END
}

start_kubelet() {
  name_processors_speed
  mkdir -p "$kubelet_root"
  kubelet_settings >"$kubelet_root/config.yaml"
  start_daemon kubelet "${settled[@]}" kubelet --config "$kubelet_root/config.yaml" --kubeconfig "$kubelet_credentials" \
    --bootstrap-kubeconfig "$cluster/bootstrap-kubelet.conf" --hostname-override "$HOST_NAME" --node-ip "$HOST_ADDRESS"
}

kubelet_settings() {
  cat <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $authority}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix://$containerd_socket
failSwapOn: false
resolvConf: ""
rotateCertificates: true
END
  [[ $CLUSTER_DNS != true ]] || printf '%s\n' "clusterDNS: [$name_server]" 'clusterDomain: cluster.local'
}

# A host sends to a Service only where it knows a way; kube-proxy's rules then say another. One that runs ends as soon as
# somebody writes its settings, even the same: the control plane's is left alone when another host joins again.
start_proxy() {
  ! daemon_runs kube-proxy || return 0
  note_settings
  ip route replace "$services" dev lo src "$HOST_ADDRESS"
  credentials kube-proxy "$PROXY_TOKEN" >"$cluster/proxy.conf"
  proxy_settings >"$cluster/proxy.yaml"
  start_daemon kube-proxy "${settled[@]}" kube-proxy --config "$cluster/proxy.yaml"
}

proxy_settings() {
  cat <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $cluster/proxy.conf}
clusterCIDR: $pods
hostnameOverride: $HOST_NAME
mode: $PROXY_MODE
END
}

# start_policies: on a node that has its address from the kubelet, as kube-router needs it. POLICIES_TOKEN, in phase join,
# is of its account.
take_policies_token() {
  [[ $CLUSTER_POLICIES != true ]] || credentials kube-router "$POLICIES_TOKEN" >"$policies_credentials"
}

start_policies() {
  [[ $CLUSTER_POLICIES == true ]] || return 0
  start_daemon kube-router "${settled[@]}" "$PROGRAMS/kube-router" --kubeconfig "$policies_credentials" \
    --hostname-override "$HOST_NAME" --service-cluster-ip-range "$services"
  await kube-router 60 policies_stand || fatal "kube-router has set no rules: $(tail -n 5 "$(daemon_log kube-router)")"
}

policies_stand() { iptables --list-rules KUBE-NWPLCY-DEFAULT &>/dev/null; }

# remove_sets: of addresses, which kube-router and kube-proxy leave; after the rules that use them.
remove_sets() {
  local name
  for name in $(ipset list -name); do ipset destroy "$name"; done
}

stop_node() {
  stop_daemon kubelet
  stop_daemon kube-router
  stop_daemon kube-proxy
  [[ $PROXY_MODE != ipvs ]] || kube-proxy --cleanup &>/dev/null || warn "kube-proxy does not take its virtual servers away"
  [[ ! -e $noted_settings ]] || restore_settings
  umount /proc/cpuinfo 2>/dev/null || true
  ip route delete "$services" 2>/dev/null || true
}

# Of what pods and programs have left.
remove_traces() {
  local name file
  unmount_below "$kubelet_root"
  for file in /run/netns/cni-*; do
    [[ -e $file ]] || continue
    umount "$file" 2>/dev/null || true
    rm -f "$file"
  done
  for name in "${kubernetes_programs[@]}"; do rm -f "/usr/local/bin/$name"; done
  rm -rf "$processor" /root/.kube /var/log/pods /var/log/containers /run/flannel
  find /sys/fs/cgroup/kubepods -depth -type d -exec rmdir {} + 2>/dev/null || true
}

# forget_cluster: a host's part of it, on its disk.
forget_cluster() { rm -rf "$kubelet_root" "$cluster" "$etcd_root" "$volumes"; }
