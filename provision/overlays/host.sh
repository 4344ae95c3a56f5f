# shellcheck shell=bash
# Sourced by phase.sh: reads host.json, which minigts has put onto this host, into variables; by one call of jq, since
# starting a program costs some 10 ms in an emulated host.
#
#   HOST_NAME, HOST_ADDRESS, HOST_INDEX     this host; its address on the loopback, its number among the lab's, from 0
#   HOST_POSITION                           its number among the hosts of its network, from 0: another where a lab has
#                                           groups, each with a network of its own
#   HOST_ADDRESS_V6, PEER_ADDRESSES_V6      the hosts' IPv6 addresses; empty in a lab without IPv6
#   LEADER_ADDRESS                          the first of those
#   PEER_NAMES, PEER_ADDRESSES, PEER_INDEXES    the others of them, in their order
#   LINK_INTERFACES, LINK_ADDRESSES, LINK_PEERS, LINK_PEER_ADDRESSES
#                                           what this host's links lead to: its end, the neighbour's name and address
#                                           there; through a switch, every host behind it; those of other networks left
#                                           out
#   LINK_MTU                                the smallest of the lab's links
#   HOST_ENGINE                             docker, or namespace: see namespace.sh
#   CLOCK                                   real, or virtual
#   FOLDERS                                 the overlay's folders, that which it extends first
#   VARIANT                                 empty for an overlay without variants
#   PROGRAMS                                the directory with its programs; empty without
#   ENCAPSULATION, OVERLAY_MTU, PROVE_ENCRYPTION, KERNEL_MODULES, POLICY_BY
#                                           what overlay.yaml says of this variant
#   PATIENCE_S                              how long an echo may take to come back, by the lab's longest round trip

eval "$(jq -r '@sh "
  HOST_NAME=\(.name)
  HOST_ADDRESS=\(.address)
  HOST_ADDRESS_V6=\(.address_v6)
  HOST_INDEX=\(.index)
  HOST_POSITION=\(.position)
  LEADER_ADDRESS=\(.leader)
  PEER_NAMES=(\([.peers[].name]))
  PEER_ADDRESSES=(\([.peers[].address]))
  PEER_ADDRESSES_V6=(\([.peers[].address_v6]))
  PEER_INDEXES=(\([.peers[].index]))
  LINK_INTERFACES=(\([.links[].interface]))
  LINK_ADDRESSES=(\([.links[].address]))
  LINK_PEERS=(\([.links[].peer]))
  LINK_PEER_ADDRESSES=(\([.links[].peer_address]))
  LINK_MTU=\(.link_mtu)
  HOST_ENGINE=\(.engine)
  CLOCK=\(.clock)
  FOLDERS=(\(.folders))
  VARIANT=\(.variant)
  PROGRAMS=\(.programs)
  OVERLAY_MTU=\(.overlay_mtu)
  ENCAPSULATION=\(.encapsulation)
  PROVE_ENCRYPTION=\(.prove_encryption)
  KERNEL_MODULES=(\(.kernel_modules))
  POLICY_BY=\(.policy)
  PATIENCE_S=\(.patience_s // 1)
"' "${HOST_JSON:-$OVERLAYS/../host.json}")"

is_leader() { [[ $HOST_ADDRESS == "$LEADER_ADDRESS" ]]; }

# host_count: of the whole network.
host_count() { echo $((${#PEER_NAMES[@]} + 1)); }

# is_neighbour NAME: whether that host is at the other end of one of this host's links.
is_neighbour() { [[ " ${LINK_PEERS[*]} " == *" $1 "* ]]; }
