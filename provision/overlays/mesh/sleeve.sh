# shellcheck shell=bash
# Sourced by this overlay's scripts: tinc as the router in user space. It tells its neighbours over TCP who is where and
# carries packets in UDP from neighbour to neighbour.
# KEY is the lab's key pair.

# shellcheck source=provision/overlays/daemons.sh
source "$OVERLAYS/daemons.sh"

readonly sleeve_port=mesh0
readonly sleeve_addresses=100.65
readonly tinc_directory=/run/minigts/tinc

# All hosts have one key, as Weave's have one password. Prints it, base64, both halves.
lab_key() {
  local made=/run/minigts/tinc-key
  if [[ ! -e $made/rsa_key.priv ]]; then
    mkdir -p "$made"
    tincd -c "$made" --generate-keys=2048 </dev/null >/dev/null 2>&1
  fi
  cat "$made"/rsa_key.{priv,pub} | base64 -w 0
}

# start_router BLOCK ROUTES: announces the addresses BLOCK; ROUTES are those that all hosts' blocks lie in.
start_router() {
  make_tunnel_device
  give_one_address
  configure_router "$1"
  start_daemon tincd tincd -c "$tinc_directory" --pidfile "$tinc_directory/pid" --no-detach
  wait_until 10 test -e "/sys/class/net/$sleeve_port" || fatal "tinc did not start: $(tail -n 5 "$(daemon_log tincd)")"
  ip link set "$sleeve_port" mtu "$OVERLAY_MTU" up
  ip route replace "$2" dev "$sleeve_port" src "$HOST_ADDRESS"
}

# tinc keeps one UDP address of each host, that which it hears of first. On a ring it may hear it from the far side; so a
# host has the same address on all its links.
give_one_address() {
  local link own
  own=$(sleeve_address "$HOST_NAME")
  ip address replace "$own/32" dev lo
  for link in "${!LINK_PEERS[@]}"; do
    ip route replace "$(sleeve_address "${LINK_PEERS[link]}")" via "${LINK_PEER_ADDRESSES[link]}" \
      dev "${LINK_INTERFACES[link]}" src "$own"
  done
}

# sleeve_address HOST: where its router is found, by those next to it.
sleeve_address() {
  local number
  number=$(index_of "$1")
  echo "$sleeve_addresses.$((number / 256)).$((number % 256))"
}

# Of two neighbours one calls the other: two that call at the same moment give up both calls, and do so for ever where
# both wait equally long.
configure_router() {
  local link peer
  mkdir -p "$tinc_directory/hosts"
  (umask 077 && base64 -d <<<"$KEY" | half 'RSA PRIVATE KEY' >"$tinc_directory/rsa_key.priv")
  own_settings >"$tinc_directory/tinc.conf"
  { echo "Subnet = $1" && data_settings && public_key; } >"$tinc_directory/hosts/$(tinc_name "$HOST_NAME")"
  for link in "${!LINK_PEERS[@]}"; do
    peer=$(tinc_name "${LINK_PEERS[link]}")
    ! is_lower "${LINK_ADDRESSES[link]}" "${LINK_PEER_ADDRESSES[link]}" || echo "ConnectTo = $peer" >>"$tinc_directory/tinc.conf"
    { echo "Address = $(sleeve_address "${LINK_PEERS[link]}")" && public_key; } >"$tinc_directory/hosts/$peer"
  done
}

# A neighbour that is silent is given up after 4 s, and called again every 2 s.
own_settings() {
  cat <<END
Name = $(tinc_name "$HOST_NAME")
AddressFamily = ipv4
Interface = $sleeve_port
PingInterval = 2
PingTimeout = 2
MaxTimeout = 2
END
}

# Never directly to a host that is no neighbour, and by UDP from the first packet: the MTU leaves room for all headers.
data_settings() {
  echo 'IndirectData = yes'
  echo 'PMTUDiscovery = no'
  if [[ $VARIANT == sleeve-encrypted ]]; then
    printf '%s\n' 'Cipher = aes-256-cbc' 'Digest = sha256' 'MACLength = 16'
  else
    printf '%s\n' 'Cipher = none' 'Digest = none'
  fi
}

public_key() { base64 -d <<<"$KEY" | half 'RSA PUBLIC KEY'; }

half() { sed -n "/BEGIN $1/,/END $1/p"; }

# tinc's names are words.
tinc_name() { echo "${1//-/_}"; }

stop_router() {
  stop_daemon tincd
  ip route flush root "$sleeve_addresses.0.0/16"
  ip address delete "$(sleeve_address "$HOST_NAME")/32" dev lo 2>/dev/null || true
  rm -rf "$tinc_directory" /run/minigts/tinc-key
}
