# shellcheck shell=bash
# Sourced by control.sh: what a cloud gives a cluster: volumes for claims, and addresses for Services of type LoadBalancer.
# controller.py gives both.

# shellcheck source=provision/overlays/kubernetes/node.sh
source "$OVERLAYS/kubernetes/node.sh"

controller_token=$cluster/controller.token

controller_objects() {
  cat <<END
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: cluster-controller, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: cluster-controller}
rules:
  - {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [get, list, watch, patch]}
  - {apiGroups: [""], resources: [persistentvolumes], verbs: [get, list, watch, create, delete]}
  - {apiGroups: [""], resources: [services], verbs: [get, list, watch]}
  - {apiGroups: [""], resources: [services/status], verbs: [patch]}
  - {apiGroups: [""], resources: [nodes], verbs: [get, list]}
  - {apiGroups: [""], resources: [events], verbs: [create]}
  - {apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: cluster-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-controller}
subjects: [{kind: ServiceAccount, name: cluster-controller, namespace: kube-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: cluster-controller, namespace: minigts}
rules:
  - {apiGroups: [""], resources: [pods], verbs: [get, list, watch, create, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: cluster-controller, namespace: minigts}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: cluster-controller}
subjects: [{kind: ServiceAccount, name: cluster-controller, namespace: kube-system}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local-path, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: minigts/local-path
reclaimPolicy: Delete
volumeBindingMode: WaitForFirstConsumer
END
}

start_controller() {
  ! daemon_runs cluster-controller || return 0
  (umask 077 && kubectl create token cluster-controller --namespace kube-system --duration 8760h >"$controller_token")
  start_daemon cluster-controller python3 "$OVERLAYS/kubernetes/controller.py" "$server" "$authority" "$controller_token" \
    "${balancer[@]}"
}

# balancer: the interface that has the addresses of Services of type LoadBalancer, and those addresses; empty without any.
read -ra balancer <<<"$(jq -r '.balancer // empty | [.interface, .addresses[]] | join(" ")' \
  "${HOST_JSON:-$OVERLAYS/../host.json}")"

stop_controller() {
  local address
  stop_daemon cluster-controller
  for address in "${balancer[@]:1}"; do ip address delete "$address/32" dev "${balancer[0]}" 2>/dev/null || true; done
}
