#!/bin/bash
# Docker for the container, Open vSwitch for its network; the switch has its kernel data path.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/ovs/switch.sh
source "$here/switch.sh"

start_docker --ip-masq=false --bridge=none
start_switch
