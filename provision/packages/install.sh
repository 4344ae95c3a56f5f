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

# stand_ins: the image's names in /usr/local/bin that answer for a program which it lacks, or stand for a smaller one.
stand_ins() {
  local each
  for each in /usr/local/bin/*; do
    [[ $(readlink "$each") =~ ^(/usr/lib/command-not-found|/usr/bin/vim.tiny)$ ]] || continue
    has_program "${each##*/}" || echo "${each##*/}"
  done
}

# has_program NAME: whether the host has the program itself.
has_program() {
  local folder
  for folder in /usr/sbin /usr/bin /sbin /bin; do [[ ! -x $folder/$1 ]] || return 0; done
  return 1
}

# let_programs_win NAMES: takes away those of these stand-ins, a name a line, whose program a package has brought.
let_programs_win() {
  local each
  for each in $1; do
    if has_program "$each"; then rm "/usr/local/bin/$each"; fi
  done
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
before=$(stand_ins)
install_archives
let_programs_win "$before"
leave_nothing_needless
say_versions
sync
