# shellcheck shell=bash
# Kubernetes: every host is a node of one cluster, and the leader is its control plane, too. VARIANT is the network that
# joins the pods. On each node a pod of the DaemonSet `measure` is the measuring container.

# shellcheck source=provision/overlays/kubernetes/control.sh
source "$OVERLAYS/kubernetes/control.sh"
# shellcheck source=provision/overlays/kubernetes/pods.sh
source "$OVERLAYS/kubernetes/pods.sh"

install() {
  note_rules
  install_programs
  start_containerd
  import_images
}

# Prints what a node needs to join: BOOTSTRAP_TOKEN, CLUSTER_CA, PROXY_TOKEN, FLANNEL_TOKEN and POLICIES_TOKEN.
join() {
  if is_leader; then
    start_control_plane
    describe_cluster
  else
    take_invitation
  fi
  start_network
  start_kubelet
  start_proxy
  take_policies_token
}

# The leader waits for the whole cluster, and then each host for its own pod.
start() {
  network_ready
  if is_leader; then wait_for_cluster; fi
  describe_measuring_pod
  start_policies
}

# AGAIN=yes where the cluster is joined again at once, since a host or link comes or goes: then the control plane keeps its
# objects, and nodes their certificates.
leave() {
  stop_network
  stop_node
  ! is_leader || stop_control_plane
  remove_pods
  stop_containerd
  remove_traces
  [[ -n ${AGAIN:-} ]] || forget_cluster
  restore_rules
  [[ $CLUSTER_POLICIES != true && $PROXY_MODE != ipvs ]] || remove_sets
}

describe_measuring_pod() {
  local address='' id=''
  wait_until "$(left_s)" find_measuring_pod || fatal "the measuring pod on this node does not run: $(measuring_pod)"
  wait_until 30 servers_listen "$id" || fatal "the servers in the measuring pod do not listen"
  echo "ADDRESS=$address"
  echo "MTU=$(mtu_with "$address" <<<"$(nsenter --target "$id" --net ip -4 address)")"
  echo "ENTER=$id"
}

# find_measuring_pod: sets `address` and `id`, of a process in it. After a power cut the API server still has a container
# that ran before; containerd knows better.
find_measuring_pod() {
  local container
  read -r address container <<<"$(measuring_pod)"
  id=$(process_of "$container")
  [[ -n $id ]]
}

# measuring_pod: ADDRESS CONTAINER, once it is ready. Asked with the kubelet's own credentials, which show it this node's
# pods alone.
measuring_pod() {
  kubectl --kubeconfig "$kubelet_credentials" get pods --namespace minigts --selector app=measure \
    --field-selector "spec.nodeName=$HOST_NAME" --output json |
    jq -r '.items[] | select(.metadata.deletionTimestamp == null) | .status | select(.containerStatuses[0].ready) |
      "\(.podIP) \(.containerStatuses[0].containerID | sub("containerd://"; ""))"'
}
