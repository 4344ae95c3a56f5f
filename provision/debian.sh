# shellcheck shell=bash
# Sourced by what is made in a Debian root of its own: the hosts' image, their kernel. As root, or as any user with
# unprivileged user namespaces.
#
# Environment:
#   MINIGTS_DEBIAN_MIRROR  a Debian mirror; else the one in this machine's apt configuration, else mmdebstrap's own
#   MINIGTS_LIFELINE       a descriptor that the caller holds open: when it closes, all that was started here ends

# shellcheck source=provision/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly suite=trixie
readonly keys=/usr/share/keyrings/debian-archive-keyring.gpg

# as_root COMMAND…: as root, or as root of a user namespace that has this user's subordinate ids. Such a root may not
# enter the user's own directories.
as_root() {
  if ((EUID == 0)); then "$@"; else mmdebstrap --unshare-helper "$@"; fi
}

# Whatever the caller dies of, that closes its end of the pipe. The script must lead a process group of its own.
end_with_caller() {
  [[ -n ${MINIGTS_LIFELINE:-} ]] || return 0
  exec 9<&"$MINIGTS_LIFELINE" </dev/null
  {
    cat <&9
    kill -TERM -- "-$$"
  } &>/dev/null &
  lifeline=$!
  trap 'kill "$lifeline"' EXIT
  exec 9<&-
}

# make_debian_root TARGET OPTION…: by mmdebstrap, with these options besides those that always hold. A TARGET of - is
# made below TMPDIR, in a directory that goes with this script, whatever ends it.
make_debian_root() {
  local target=$1 mirror mode=unshare mounts=()
  shift
  mirror=$(configured_mirror)
  # What root mounts in there is seen by nobody else and goes with the last process; others have namespaces anyhow.
  ((EUID != 0)) || mode=root mounts=(unshare --mount --propagation private)
  [[ $target != - ]] || make_passing_directory
  info "building a Debian $suite root from ${mirror:-the usual mirror}"
  HOME=/nonexistent "${mounts[@]}" mmdebstrap --mode="$mode" --variant=minbase --keyring="$keys" --skip=check/signed-by \
    --aptopt='Apt::Install-Recommends "false"' \
    --aptopt='Acquire::Retries "3"' \
    --aptopt='Acquire::http::Timeout "20"' \
    "$@" "$suite" "$target" ${mirror:+"$mirror"}
}

# Sets TMPDIR to a directory of this script's own below it. Open to all, for what is in there may belong to the root of a
# user namespace.
make_passing_directory() {
  passing=$(mktemp -d "${TMPDIR:?}/minigts-root.XXXXXX")
  chmod 1777 "$passing"
  TMPDIR=$passing
  trap remove_passing_directory EXIT
}

# What still runs in there has been told to end; it may write for a moment longer.
remove_passing_directory() {
  local tries
  [[ -z ${lifeline:-} ]] || kill "$lifeline" 2>/dev/null || true
  for tries in {1..40}; do
    as_root find "$passing" -xdev -mindepth 1 -delete &>/dev/null || true
    ! rm -rf --one-file-system -- "$passing" 2>/dev/null || return 0
    sleep 0.5
  done
  info "after $tries tries $passing is still there"
}

# The Debian mirror that this machine's own apt uses. On another distribution there is none, and mmdebstrap knows one.
configured_mirror() {
  if [[ -n ${MINIGTS_DEBIAN_MIRROR:-} ]]; then
    echo "$MINIGTS_DEBIAN_MIRROR"
  else
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
      awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }'
  fi
}

# add_suite NAME: a setup hook by which packages of another suite can be had from the same mirror. One that is slow to
# follow may hold an index of it past its date, which is signed all the same.
# shellcheck disable=SC2016
add_suite() {
  printf 'sed -n "s|^deb \\(.*\\) %s .*|deb [check-valid-until=no] \\1 %s main|p" ' "$suite" "$1"
  printf '"$1/etc/apt/sources.list" >"$1/etc/apt/sources.list.d/%s.list"' "$1"
}
