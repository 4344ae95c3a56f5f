#!/bin/bash
# Installs the packages whose archives lie in a directory of this host, and takes the directory away.
# Says the versions of all that is installed then. Services are not started: what a host runs, its topology says.
#
#   install.sh DIRECTORY
set -euo pipefail

readonly archives=$1 policy=/usr/sbin/policy-rc.d

keep_services_from_starting() {
  [[ ! -e $policy ]] || return 0
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
}

install_archives() {
  local -a found
  shopt -s nullglob
  found=("$archives"/*.deb)
  ((${#found[@]} == 0)) || DEBIAN_FRONTEND=noninteractive /usr/bin/apt-get --quiet --yes --no-install-recommends \
    -o APT::Sandbox::User= install "${found[@]}" >&2
}

# A package's own log directories stay: its service may need them.
leave_nothing_needless() {
  rm -rf "$archives" /var/cache/apt/*.bin /var/log/apt /var/log/dpkg.log /var/log/alternatives.log
}

say_versions() {
  # shellcheck disable=SC2016
  dpkg-query -W -f '${Package} ${Version}\n'
}

keep_services_from_starting
install_archives
leave_nothing_needless
say_versions
sync
