#!/bin/bash
# Docker's engine with its own bridge, in which this host's containers have a /24, and the proxy of published ports.
#
# Environment: MINIGTS_INDEX.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

start_docker --userland-proxy=true --ip-masq=false --bip="172.29.$MINIGTS_INDEX.1/24"
