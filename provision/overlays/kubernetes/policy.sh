# shellcheck shell=bash
# Sourced by overlay.sh: phase policy. Its POLICY is what tools/minigts/overlays/policy_objects.py writes.

readonly measuring=minigts # the measuring pods' namespace

# A NetworkPolicy for each measuring pod, which its node's kube-router enforces. Waits until it does, or enforces nothing.
policy() {
  local mark=''
  [[ -z $POLICY ]] || mark=$(sha256sum <<<"$POLICY" | head -c 16)
  if is_leader; then
    if [[ -n $mark ]]; then
      name_measuring_pods
      network_policies | kubectl apply --filename - >/dev/null
    fi
    kubectl delete networkpolicies --namespace "$measuring" --selector "minigts/mark,minigts/mark!=$mark" >/dev/null
  fi
  await kube-router 60 kube_router_has || fatal "kube-router does not enforce the policy: $(tail -n 5 "$(daemon_log kube-router)")"
}

# Each has its node's name as a label, by which a policy can mean it.
name_measuring_pods() {
  local pod node
  kubectl get pods --namespace "$measuring" --selector app=measure --output json |
    jq -r '.items[] | "\(.metadata.name) \(.spec.nodeName)"' |
    while read -r pod node; do
      kubectl label pod "$pod" --namespace "$measuring" --overwrite "minigts/host=$node" >/dev/null
    done
}

# Who is no measuring pod passes: every other pod; and nodes, by their own addresses, or by the first two of their blocks, which
# are their bridge's and their tunnel's.
# shellcheck disable=SC2154
network_policies() {
  local index nodes=()
  for index in "$HOST_INDEX" "${PEER_INDEXES[@]}"; do nodes+=("172.31.$index.0/31"); done
  jq -c --arg mark "$mark" --arg pods "$pods" --arg namespace "$measuring" --args '
    def others: [
      {namespaceSelector: {}, podSelector: {matchExpressions: [{key: "minigts/host", operator: "DoesNotExist"}]}},
      {ipBlock: {cidr: "0.0.0.0/0", except: [$pods]}},
      ($ARGS.positional[] | {ipBlock: {cidr: .}})
    ];
    to_entries[] | {
      apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy",
      metadata: {name: "minigts-\($mark)-\(.key)", namespace: $namespace, labels: {"minigts/mark": $mark}},
      spec: {
        podSelector: {matchLabels: {"minigts/host": .key}}, policyTypes: ["Ingress"],
        ingress: ([{from: others}] + [.value[] | {
          from: [{podSelector: {matchExpressions: [{key: "minigts/host", operator: "In", values: .from}]}}]
        } + (if .ports == [] then {} else {ports} end)])
      }
    }' "${nodes[@]}" <<<"$POLICY"
}

# kube-router writes the name of each policy of a pod beside its rules.
kube_router_has() {
  local known
  known=$(iptables-save --table filter | grep -o 'run through nw policy minigts-[^ "]*' | sort -u)
  [[ $known == "${mark:+run through nw policy minigts-$mark-$HOST_NAME}" ]]
}
