# shellcheck shell=bash
# Sourced by overlays that encrypt by the kernel's WireGuard, each pair of hosts with keys that follow from the lab's secret.

readonly listening_port=51820

# lab_secret: for the leader to print as SECRET, from which every host knows every key. It is kept, so that a host that
# joins again has the same.
lab_secret() {
  [[ -e $(secret_file) ]] || head -c 32 /dev/urandom | base64 -w 0 >"$(secret_file)"
  cat "$(secret_file)"
}

secret_file() { echo /run/minigts/wireguard-secret; }

# add_wireguard INTERFACE: with the peers on stdin, a line for each: its name, where it is, and the block behind it.
add_wireguard() {
  ip link add "$1" mtu "$OVERLAY_MTU" type wireguard
  python3 "$OVERLAYS/wireguard.py" "$1" "$listening_port" "$SECRET" "$HOST_NAME"
}

remove_wireguard() {
  ip link delete "$1" 2>/dev/null || true
  rm -f "$(secret_file)"
}
