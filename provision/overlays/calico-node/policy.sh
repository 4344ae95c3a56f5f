# shellcheck shell=bash
# Phase policy: the rules become a policy of Calico's.

readonly policy_key=/calico/resources/v3/projectcalico.org/globalnetworkpolicies/minigts

# Waits until Felix enforces POLICY, or nothing, on this host.
policy() {
  local mark
  mark=$(sha256sum <<<"$POLICY" | head -c 16)
  if [[ -n $POLICY ]]; then
    ! is_leader || etcd put "$policy_key" "$(global_policy)" >/dev/null
    wait_until 30 felix_has || fatal "Felix does not enforce the policy: $(tail -n 5 "$(daemon_log felix)")"
  else
    ! is_leader || etcd del "$policy_key" >/dev/null
    wait_until 30 felix_has_none || fatal "Felix keeps the policy: $(tail -n 5 "$(daemon_log felix)")"
  fi
}

# Every rule has the mark, which Felix writes beside what it makes of it. Who is not a container of the lab passes.
global_policy() {
  jq -c --arg mark "$mark" '
    def word: ascii_upcase[:1] + .[1:];
    def containers: "host in {" + (map("'\''" + . + "'\''") | join(",")) + "}";
    def rule: {
      action: .action | word,
      metadata: {annotations: {minigts: $mark}},
      source: {selector: .from | containers},
      destination: ({selector: .to | containers} + if .ports == [] then {} else {ports} end)
    } + if .protocol then {protocol: .protocol | ascii_upcase} else {} end;
    {
      kind: "GlobalNetworkPolicy", apiVersion: "projectcalico.org/v3", metadata: {name: "minigts"},
      spec: {
        tier: "default", order: 100, selector: "has(host)", types: ["Ingress"],
        ingress: (
          (.rules | map(rule)) +
          [{action: .default | word, metadata: {annotations: {minigts: $mark}}, source: {selector: "has(host)"}},
            {action: "Allow"}])
      }
    }' <<<"$POLICY"
}

felix_has() { nft list table ip calico | grep -F "minigts=$mark" >/dev/null; }

felix_has_none() { ! nft list table ip calico | grep -F 'minigts=' >/dev/null; }
