#!/bin/bash
# A network of Docker's on this host's link, by its driver ipvlan.
#
# Environment: as for segment.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/segment.sh
source "$here/../segment.sh"

join_segment ipvlan
