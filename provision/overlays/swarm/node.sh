# shellcheck shell=bash
# Sourced by this overlay's scripts that change what the host is to the Swarm.

# shellcheck source=provision/overlays/docker.sh
source "$(dirname "${BASH_SOURCE[0]}")/../docker.sh"

# inactive, pending, active, error or locked: Docker Engine API, GET /info.
swarm_state() { docker_api GET /info | jq -r .Swarm.LocalNodeState; }
