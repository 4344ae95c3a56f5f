# shellcheck shell=bash
# Sourced by overlay.sh: the control plane, on the leader. Certificates, credentials and the rights of joining nodes are
# kubeadm's own; its programs are daemons of the host, with the options that kubeadm gives them.

# shellcheck source=provision/overlays/kubernetes/controller.sh
source "$OVERLAYS/kubernetes/controller.sh"

readonly pki=$cluster/pki
readonly ready_s=$((150 * times))
manifests=/srv/kubernetes/manifests # the user's, by `files:` of a topology

start_control_plane() {
  local known=no
  if [[ -e $cluster/admin.conf ]]; then known=yes; else make_certificates; fi
  start_store
  start_daemon kube-apiserver "${settled[@]}" kube-apiserver "${apiserver_options[@]}"
  await kube-apiserver 120 apiserver_ready || fatal "the API server is not ready: $(tail -n 5 "$(daemon_log kube-apiserver)")"
  start_daemon kube-controller-manager "${settled[@]}" kube-controller-manager "${controller_options[@]}"
  start_daemon kube-scheduler "${settled[@]}" kube-scheduler "${scheduler_options[@]}"
  mkdir -p /root/.kube
  ln -sf "$cluster/admin.conf" /root/.kube/config
  invite
  [[ $known == no ]] || take_away_lost_nodes
}

# The certificate that a host has may be of a cluster whose control plane is gone.
make_certificates() {
  [[ ! -e $authority ]] || forget_cluster
  mkdir -p "$cluster"
  kubeadm token generate >"$cluster/token"
  cluster_settings >"$cluster/kubeadm.yaml"
  kubeadm init phase certs all --config "$cluster/kubeadm.yaml" >/dev/null
  kubeadm init phase kubeconfig all --config "$cluster/kubeadm.yaml" >/dev/null
}

cluster_settings() {
  cat <<END
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: $(<"$cluster/token"), ttl: 0s}]
localAPIEndpoint: {advertiseAddress: $HOST_ADDRESS, bindPort: 6443}
nodeRegistration: {name: $HOST_NAME, criSocket: "unix://$containerd_socket"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
dns: {imageRepository: docker.io/${dns_image%%/*}, imageTag: ${dns_image#*:}}
encryptionAlgorithm: ECDSA-P256
etcd: {external: {endpoints: ["http://127.0.0.1:2379"]}}
kubernetesVersion: $(kubeadm version --output short)
networking: {podSubnet: $pods, serviceSubnet: $services}
END
}

# Reached from this host alone.
start_store() {
  mkdir -p "$etcd_root"
  start_daemon etcd "${settled[@]}" etcd --data-dir "$etcd_root" --listen-client-urls http://127.0.0.1:2379 \
    --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 --log-level warn
  await etcd 60 store_answers || fatal "etcd did not start: $(tail -n 5 "$(daemon_log etcd)")"
}

store_answers() { curl -sf -o /dev/null http://127.0.0.1:2379/health; }

readonly apiserver_options=(
  --advertise-address="$HOST_ADDRESS" --allow-privileged=true "--authorization-mode=Node,RBAC"
  --client-ca-file="$pki/ca.crt" --enable-admission-plugins=NodeRestriction --enable-bootstrap-token-auth=true
  --etcd-servers=http://127.0.0.1:2379
  --kubelet-client-certificate="$pki/apiserver-kubelet-client.crt"
  --kubelet-client-key="$pki/apiserver-kubelet-client.key"
  "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname"
  --proxy-client-cert-file="$pki/front-proxy-client.crt" --proxy-client-key-file="$pki/front-proxy-client.key"
  --requestheader-allowed-names=front-proxy-client --requestheader-client-ca-file="$pki/front-proxy-ca.crt"
  --requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-group-headers=X-Remote-Group
  --requestheader-username-headers=X-Remote-User --secure-port=6443
  --service-account-issuer=https://kubernetes.default.svc.cluster.local
  --service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key"
  --service-cluster-ip-range="$services" --tls-cert-file="$pki/apiserver.crt"
  --tls-private-key-file="$pki/apiserver.key"
)

# A program that renews its lease late has lost it, and ends. In real time a busy machine makes it late, and with one control
# plane there is nobody who could have taken its place.
elects=true
[[ $CLOCK == virtual ]] || elects=false

# Nodes' blocks are given beforehand, in invite.
readonly controller_options=(
  --authentication-kubeconfig="$cluster/controller-manager.conf"
  --authorization-kubeconfig="$cluster/controller-manager.conf" --bind-address=127.0.0.1
  --client-ca-file="$pki/ca.crt" --cluster-name=kubernetes --cluster-signing-cert-file="$pki/ca.crt"
  --cluster-signing-key-file="$pki/ca.key" '--controllers=*,bootstrapsigner,tokencleaner'
  --kubeconfig="$cluster/controller-manager.conf" --leader-elect="$elects"
  --requestheader-client-ca-file="$pki/front-proxy-ca.crt" --root-ca-file="$pki/ca.crt"
  --service-account-private-key-file="$pki/sa.key" --service-cluster-ip-range="$services"
  --use-service-account-credentials=true
)

readonly scheduler_options=(
  --authentication-kubeconfig="$cluster/scheduler.conf" --authorization-kubeconfig="$cluster/scheduler.conf"
  --bind-address=127.0.0.1 --kubeconfig="$cluster/scheduler.conf" --leader-elect="$elects"
)

apiserver_ready() { curl -skf -o /dev/null "$server/readyz"; }

# invite: the rights by which nodes join, a Node for each host with its block of addresses, kube-proxy's account, and the
# measuring pods.
invite() {
  kubeadm init phase bootstrap-token --config "$cluster/kubeadm.yaml" >/dev/null
  objects | kubectl apply --filename - >/dev/null
  [[ $CLUSTER_POLICIES != true ]] || rights_of_policies | kubectl apply --filename - >/dev/null
  [[ $CLUSTER_DNS != true ]] || name_service | kubectl apply --filename - >/dev/null
}

rights_of_policies() {
  cat <<END
apiVersion: v1
kind: ServiceAccount
metadata: {name: kube-router, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kube-router}
rules:
  - {apiGroups: [""], resources: [namespaces, pods, nodes], verbs: [get, list, watch]}
  - {apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kube-router}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kube-router}
subjects: [{kind: ServiceAccount, name: kube-router, namespace: kube-system}]
END
}

# kubeadm's own, but for names outside the cluster: there is nobody to ask, and they do not exist. A Service that is
# applied again has a version.
name_service() {
  local outside='.:53 {\n        template IN ANY . {\n            rcode NXDOMAIN\n        }\n    }'
  local inside='cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {'
  kubeadm init phase addon coredns --config "$cluster/kubeadm.yaml" --print-manifest |
    sed -e '/^ *forward \. /,/}/d' -e '/^ *loop$/d' -e '/^ *resourceVersion: "0"$/d' \
      -e "s/^    \\.:53 {\$/    $outside\\n    $inside/"
}

objects() {
  local peer
  node "$HOST_NAME" "$HOST_INDEX"
  for peer in "${!PEER_NAMES[@]}"; do node "${PEER_NAMES[peer]}" "${PEER_INDEXES[peer]}"; done
  cat <<END
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: kube-proxy, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubeadm:node-proxier}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:node-proxier}
subjects: [{kind: ServiceAccount, name: kube-proxy, namespace: kube-system}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: flannel, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: flannel}
rules:
  - {apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}
  - {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: flannel}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: flannel}
subjects: [{kind: ServiceAccount, name: flannel, namespace: kube-system}]
---
apiVersion: v1
kind: Namespace
metadata: {name: minigts}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: measure, namespace: minigts}
spec:
  selector: {matchLabels: {app: measure}}
  template:
    metadata: {labels: {app: measure}}
    spec:
      containers:
        - {name: measure, image: $measure_image, imagePullPolicy: IfNotPresent, securityContext: {privileged: true}}
      dnsPolicy: Default
      terminationGracePeriodSeconds: 0
      tolerations: [{operator: Exists}]
END
  controller_objects
}

# Of hosts that the lab no longer has.
take_away_lost_nodes() {
  local node
  for node in $(kubectl get nodes --output name); do
    [[ " $HOST_NAME ${PEER_NAMES[*]} " == *" ${node#node/} "* ]] || kubectl delete "$node" >/dev/null
  done
}

# node NAME INDEX
node() {
  cat <<END
---
apiVersion: v1
kind: Node
metadata: {name: $1}
spec: {podCIDR: 172.31.$2.0/24, podCIDRs: [172.31.$2.0/24]}
END
}

describe_cluster() {
  BOOTSTRAP_TOKEN=$(<"$cluster/token")
  CLUSTER_CA=$(base64 --wrap 0 "$authority")
  PROXY_TOKEN=$(kubectl create token kube-proxy --namespace kube-system --duration 8760h)
  FLANNEL_TOKEN='' POLICIES_TOKEN=''
  [[ $VARIANT != flannel* ]] || FLANNEL_TOKEN=$(kubectl create token flannel --namespace kube-system --duration 8760h)
  [[ $CLUSTER_POLICIES != true ]] ||
    POLICIES_TOKEN=$(kubectl create token kube-router --namespace kube-system --duration 8760h)
  echo "BOOTSTRAP_TOKEN=$BOOTSTRAP_TOKEN"
  echo "CLUSTER_CA=$CLUSTER_CA"
  echo "PROXY_TOKEN=$PROXY_TOKEN"
  echo "FLANNEL_TOKEN=$FLANNEL_TOKEN"
  echo "POLICIES_TOKEN=$POLICIES_TOKEN"
}

# What ABSENT would carry keeps workloads from being complete, so that none is waited for then.
wait_for_cluster() {
  local name nodes=()
  for name in "$HOST_NAME" "${PEER_NAMES[@]}"; do [[ " ${ABSENT:-} " == *" $name "* ]] || nodes+=("$name"); done
  kubectl wait --for condition=Ready node "${nodes[@]}" --timeout "$(left_s)s" >/dev/null || fatal "not every node is ready:
$(kubectl get nodes --output wide)
$(kubectl get nodes --output json | jq -r '.items[] | .metadata.name as $node | .status.conditions[]? |
    select((.type == "Ready") != (.status == "True")) | "\($node): \(.reason): \(.message)"')"
  wait_for_workload minigts DaemonSet/measure
  [[ $CLUSTER_DNS != true ]] || wait_for_workload kube-system Deployment/coredns
  apply_manifests
}

# left_s: of this phase's time for what it waits for.
left_s() { echo $((SECONDS < ready_s ? ready_s - SECONDS : 1)); }

# What the user's own files ask for is there before `up` returns.
apply_manifests() {
  local namespace what
  compgen -G "$manifests/*" >/dev/null || return 0
  kubectl apply --recursive --filename "$manifests" >/dev/null || fatal "the API server does not take $manifests"
  kubectl get --recursive --filename "$manifests" --output json | jq -r '(.items // [.])[] | select(
      (.kind | IN("Deployment", "DaemonSet", "StatefulSet")) or
      (.kind == "Service" and .spec.type == "LoadBalancer" and .spec.loadBalancerClass == null)
    ) | "\(.metadata.namespace) \(.kind)/\(.metadata.name)"' |
    while read -r namespace what; do
      case $what in
      Service/*) wait_for_address "$namespace" "$what" ;;
      *) wait_for_workload "$namespace" "$what" ;;
      esac
    done
}

# wait_for_address NAMESPACE Service/NAME
wait_for_address() {
  local found='{.status.loadBalancer.ingress[0].ip}' limit_s=$((20 * times))
  kubectl --namespace "$1" wait --for "jsonpath=$found" "$2" --timeout "${limit_s}s" &>/dev/null || fatal "$2 has no address:
$(kubectl --namespace "$1" get events --field-selector "type=Warning,involvedObject.name=${2#*/}" --output json |
    jq -r '.items[] | .message')"
}

# wait_for_workload NAMESPACE KIND/NAME. That pods have no name server is said of every pod and holds none up.
wait_for_workload() {
  [[ -z ${ABSENT:-} ]] || return 0
  kubectl --namespace "$1" rollout status "$2" --timeout "$(left_s)s" &>/dev/null || fatal "$2 is not ready:
$(kubectl --namespace "$1" get pods --output wide)
$(kubectl --namespace "$1" get events --field-selector type!=Normal,reason!=MissingClusterDNS --output json |
    jq -r '.items[-10:][] | "\(.involvedObject.kind)/\(.involvedObject.name): \(.reason): \(.message)"')"
}

stop_control_plane() {
  local name
  stop_controller
  for name in kube-scheduler kube-controller-manager kube-apiserver etcd; do stop_daemon "$name"; done
}
