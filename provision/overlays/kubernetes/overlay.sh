# shellcheck shell=bash
# Kubernetes: every host is a node of one cluster, and the leader is its control plane, too. VARIANT is the network that
# joins the pods. On each node a pod of the DaemonSet `measure` is the measuring container.

# shellcheck source=provision/overlays/kubernetes/control.sh
source "$OVERLAYS/kubernetes/control.sh"
# shellcheck source=provision/overlays/kubernetes/pods.sh
source "$OVERLAYS/kubernetes/pods.sh"
# shellcheck source=provision/overlays/kubernetes/policy.sh
source "$OVERLAYS/kubernetes/policy.sh"

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

# The leader waits for the whole cluster, and then each host for its own pod. ABSENT, where this host joins again: the names
# of hosts that are off, or have not joined again; nobody waits for them.
start() {
  network_ready
  ! joined_before || wait_for_what_is_said_of_pods
  if is_leader; then
    start_controller
    wait_for_cluster
  fi
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

verify() {
  every_daemon_runs
  prove_data_path
}

every_daemon_runs() {
  local record name
  for record in "$daemons"/*.pid; do
    name=$(basename "$record" .pid)
    daemon_runs "$name" || fatal "$name has ended: $(tail -n 3 "$(daemon_log "$name")")"
  done
}

# joined_before: whether this host was a node before its containerd was started.
joined_before() { [[ $kubelet_credentials -ot $containerd_state/config.toml ]]; }

# After a power cut the API server says of this node's pods what they were before it, until the kubelet has said otherwise.
wait_for_what_is_said_of_pods() {
  wait_until "$(left_s)" no_pod_is_said_to_run_that_does_not || fatal "the kubelet has not told what became of its pods:
$(own_pods --all-namespaces | jq -r '.items[] | "\(.metadata.namespace)/\(.metadata.name)"')"
}

no_pod_is_said_to_run_that_does_not() {
  local said running id
  running=" $(containers tasks ls --quiet | tr '\n' ' ') "
  said=$(own_pods --all-namespaces | jq -r '.items[].status.containerStatuses[]? | select(.state.running).containerID |
    sub("containerd://"; "")') || return
  for id in $said; do [[ $running == *" $id "* ]] || return; done
}

# own_pods [OPTION…]: asked with the kubelet's own credentials, which show it this node's pods alone.
own_pods() {
  kubectl --kubeconfig "$kubelet_credentials" get pods "$@" --field-selector "spec.nodeName=$HOST_NAME" --output json
}

describe_measuring_pod() {
  local address='' id=''
  wait_until "$(left_s)" find_measuring_pod || fatal "the measuring pod on this node does not run: $(measuring_pod)"
  wait_until $((30 * times)) servers_listen "$id" || fatal "the servers in the measuring pod do not listen"
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

# measuring_pod: ADDRESS CONTAINER, once it is ready.
measuring_pod() {
  own_pods --namespace minigts --selector app=measure |
    jq -r '.items[] | select(.metadata.deletionTimestamp == null) | .status | select(.containerStatuses[0].ready) |
      "\(.podIP) \(.containerStatuses[0].containerID | sub("containerd://"; ""))"'
}
