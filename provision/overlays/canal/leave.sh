#!/bin/bash
# Takes the policy, then what flannel has, off this host.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/policy.sh
source "$here/../policy.sh"

remove_policy
exec "$here/../flannel/leave.sh"
