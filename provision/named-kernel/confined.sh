#!/bin/bash
# Runs a command in a Debian root, as any user, where it reaches nothing of this machine but one directory: it has no
# network, sees no other process, and ends with this one. Who compiles a stranger's sources runs a stranger's programs.
#
#   confined.sh ROOT WORK TREE COMMAND…    WORK is the command's /tmp and TREE its /tmp/tree: all that it may write
#
# Environment: MINIGTS_LIFELINE, as in ../debian.sh.
set -euo pipefail

readonly root=$1 work=$2 tree=$3
shift 3

# Runs in the new namespaces. After pivot_root(2) nothing outside has a name any more.
enter() {
  mount --make-rprivate /
  mount --bind "$root" "$root"
  mount --bind "$work" "$root/tmp"
  mount --bind "$tree" "$root/tmp/tree"
  mount -t tmpfs -o mode=755 dev "$root/dev"
  local each
  for each in null zero random urandom; do
    : >"$root/dev/$each"
    mount --bind "/dev/$each" "$root/dev/$each"
  done
  mount -t proc proc "$root/proc"
  mount -o remount,bind,ro "$root"
  cd "$root"
  pivot_root . .
  umount -l .
  cd /tmp
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/nonexistent LC_ALL=C.UTF-8 "$@"
}

umask 022
if [[ ${MINIGTS_ENTERED:-} == yes ]]; then
  enter "$@"
else
  # shellcheck source=provision/debian.sh
  source "$(dirname "${BASH_SOURCE[0]}")/../debian.sh"
  end_with_caller
  # Of this machine's root, too, the command has no privilege outside: a user namespace has root of its own.
  MINIGTS_ENTERED=yes unshare --user --map-root-user --mount --pid --fork --kill-child=KILL --net --ipc --uts \
    "$BASH" "${BASH_SOURCE[0]}" "$root" "$work" "$tree" "$@" &
  inside=$!
  # While it waits for what it has started, unshare(1) ignores all signals that can be ignored.
  trap 'kill -KILL "$inside"' TERM
  wait "$inside"
fi
