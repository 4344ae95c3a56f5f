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
  local FLANNEL_SUBNET
  # shellcheck disable=SC1090
  source "$subnet_file"
  etcd get --prefix --write-out=json /coreos.com/network/subnets/ |
    jq -r '.kvs[] | "\(.key | @base64d) \(.lease)"' |
    awk -v "block=${FLANNEL_SUBNET%.*}.0" 'index($1, "/" block "-") { print $2 }' |
    while read -r id; do etcd lease timetolive "$(printf %x "$id")"; done
}

prove_encapsulation "$(expected)"
prove_mtu
echo "LEASE=$(lease)"
