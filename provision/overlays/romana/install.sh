#!/bin/bash
# Docker for the container; its network is made by hand.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

start_docker --ip-masq=false --bridge=none
