#!/bin/bash
# Makes the rules a policy of Calico's, and waits until Felix enforces it on this host.
#
# Environment: as for node.sh; POLICY, the rules as policy.py writes them; empty: none from now on.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/calico-node/node.sh
source "$here/node.sh"

readonly key=/calico/resources/v3/projectcalico.org/globalnetworkpolicies/minigts
mark=$(sha256sum <<<"$POLICY" | head -c 16)

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

if [[ -n $POLICY ]]; then
  [[ $MINIGTS_ADDRESS != "$MINIGTS_LEADER" ]] || etcd put "$key" "$(global_policy)" >/dev/null
  wait_until 30 felix_has || fatal "Felix does not enforce the policy: $(tail -n 5 "$(daemon_log felix)")"
else
  [[ $MINIGTS_ADDRESS != "$MINIGTS_LEADER" ]] || etcd del "$key" >/dev/null
  wait_until 30 felix_has_none || fatal "Felix keeps the policy: $(tail -n 5 "$(daemon_log felix)")"
fi
