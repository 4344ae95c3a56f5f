#!/bin/bash
# Starts the measuring container, and has Calico's plugin attach it.
#
# Environment: as for node.sh.
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/calico-node/node.sh
source "$here/node.sh"

give_gateway_a_way
run_measuring_container none
process=$(container_process)
# One that was there before this host was started again gives its address back.
call_plugin DEL "$process" >/dev/null
address=$(call_plugin ADD "$process" | jq -er '.ips[0].address')
wait_until 60 endpoint_has_rules || fatal "Felix makes no rules for $endpoint: $(tail -n 5 "$(daemon_log felix)")"
wait_for_servers
describe_measuring_container "${address%/*}"
