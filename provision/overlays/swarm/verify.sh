#!/bin/bash
# Proves the data path: what the container sends to a peer's container leaves this host as VXLAN.
#
# Environment: ENTER (process id in the container), PEER (address of another host's container).
# Prints: ENCAPSULATION=vxlan
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/lib.sh
source "$here/../../lib.sh"

readonly vxlan_port=4789

# One encapsulated echo request that leaves by a link; the capture ends by itself.
captured_vxlan() {
  local capture
  timeout 10 tcpdump -i any -n -c 1 -Q out --immediate-mode "udp dst port $vxlan_port" >/tmp/verify.capture 2>&1 &
  capture=$!
  wait_until 5 grep -q 'listening on' /tmp/verify.capture || fatal "$(cat /tmp/verify.capture)"
  nsenter --target "$ENTER" --net ping -c 5 -i 0.2 -W 2 -q "$PEER" >/tmp/verify.ping ||
    fatal "the container does not reach $PEER: $(tail -n 2 /tmp/verify.ping)"
  wait "$capture"
  grep -q VXLAN /tmp/verify.capture
}

captured_vxlan || fatal "what goes to $PEER is not VXLAN: $(cat /tmp/verify.capture)"
echo ENCAPSULATION=vxlan
