# shellcheck shell=bash
# Sourced by overlays that ask more of the kernel than every host's has.

# need_modules NAME…: loads them. Ends with code 3, by which minigts knows that this machine lacks something, and says
# what to do.
need_modules() {
  local name
  for name in "$@"; do
    modprobe -q "$name" || {
      echo "the hosts' kernel has no $name: build the full one with \`minigts kernel build\`, and bring the lab up anew" >&2
      exit 3
    }
  done
}
