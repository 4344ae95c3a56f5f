#!/bin/bash
# Takes the container, the network and the engine off this host.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/segment.sh
source "$here/../segment.sh"

leave_segment
