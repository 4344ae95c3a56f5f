# shellcheck shell=bash
# The baseline is the plain host, as in the study: the tools' servers run on it without a container. Variant v6 is the
# same host by its IPv6 address.

# shellcheck source=provision/overlays/bare.sh
source "$OVERLAYS/bare.sh"

install() { :; }

start() {
  if [[ $VARIANT == v6 ]]; then
    describe_host "$HOST_ADDRESS_V6" "$(smallest_mtu)"
  else
    describe_host "$HOST_ADDRESS" "$(smallest_mtu)"
  fi
}

leave() { stop_servers; }

# Of this host's own links; a host without any has the lab's.
smallest_mtu() {
  compgen -G '/sys/class/net/eth*/mtu' >/dev/null || echo "$LINK_MTU"
  cat /sys/class/net/eth*/mtu 2>/dev/null | sort -n | head -n 1
}
