# shellcheck shell=bash
# A network of Docker's on this host's link, by its driver ipvlan.

# shellcheck source=provision/overlays/segment.sh
source "$OVERLAYS/segment.sh"

join() { join_segment ipvlan; }
