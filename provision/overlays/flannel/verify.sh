#!/bin/bash
# Proves the data path: on the links is what the backend makes of packets. Shows the lease.
#
# Environment: as for wire.sh and flanneld.sh.
# Prints: ENCAPSULATION, by the backend; LEASE, this host's block and how long it holds.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/wire.sh
source "$here/../wire.sh"
# shellcheck source=provision/overlays/flannel/flanneld.sh
source "$here/flanneld.sh"

expected() { [[ $MINIGTS_VARIANT == host-gw ]] && echo none || echo "$MINIGTS_VARIANT"; }

lease() {
  local FLANNEL_SUBNET id
  # shellcheck disable=SC1090
  source "$subnet_file"
  id=$(etcd get --prefix --write-out=json /coreos.com/network/subnets/ |
    jq -r --arg block "${FLANNEL_SUBNET%.*}.0-" '.kvs[] | select(.key | @base64d | contains("/" + $block)) | .lease')
  etcd lease timetolive "$(printf %x "$id")" --write-out=json |
    jq -er --arg block "$FLANNEL_SUBNET" 'select(.ttl > 0) | "\($block) for \(."granted-ttl") s"' ||
    fatal "this host's lease on $FLANNEL_SUBNET has run out"
}

prove_encapsulation "$(expected)"
prove_mtu
held=$(lease)
echo "LEASE=$held"
