# shellcheck shell=bash
# Sourced by this overlay's scripts: the switch and its bridge.

# shellcheck source=provision/overlays/openvswitch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../openvswitch.sh"

# shellcheck disable=SC2034 # the scripts that source this use it
readonly bridge=br-overlay
