# shellcheck shell=bash
# Sourced by overlay.sh: what minigts asks about pods.
#
#   pods     on the leader: prints NAMESPACE/NAME=JSON of each pod: its node, its uid, why it is on no node, and its
#            containers: of each its name, its id in containerd, and its state

pods() {
  kubectl get pods --all-namespaces --output json | jq -r '
    def state: if .running then "running"
      elif .terminated then "ended with code \(.terminated.exitCode)"
      elif .waiting then "waits: \([.waiting.reason, .waiting.message] | map(select(.)) | join(": "))"
      else "was not started" end;
    .items[] | .status.containerStatuses as $known | "\(.metadata.namespace)/\(.metadata.name)=" + ({
      node: (.spec.nodeName // ""), uid: .metadata.uid,
      unscheduled: ([.status.conditions[]? | select(.type == "PodScheduled" and .status == "False").message][0] // ""),
      containers: [.spec.containers[].name as $name | ([$known[]? | select(.name == $name)][0] // {}) | {
        name: $name, id: (.containerID // "" | sub("^containerd://"; "")), state: (.state // {} | state)
      }]
    } | tojson)'
}
