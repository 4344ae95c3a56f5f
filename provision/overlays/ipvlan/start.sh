#!/bin/bash
# Starts the measuring container on the segment.
#
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/segment.sh
source "$here/../segment.sh"

start_on_segment
