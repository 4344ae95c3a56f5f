#!/bin/bash
# Docker for the container; its network is Weave's.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

start_docker --ip-masq=false --bridge=none
