# shellcheck shell=bash
# Sourced by what is made in a Debian root of its own: the hosts' image, their kernel. As root, or as any user with
# unprivileged user namespaces.
#
# Environment:
#   MINIGTS_DEBIAN_MIRROR     a Debian mirror; else the one in this machine's apt configuration, else Debian's own
#   MINIGTS_DEBIAN_FALLBACKS  where to look after it, in this order, parted by spaces; a DAY in an address is the day on
#                             which Debian's snapshot archive had what is wanted. Empty: nowhere
#   MINIGTS_DEBIAN_KEYS       whose signatures count; else Debian's
#   MINIGTS_ARCHIVE_DAY       the day of the Debian root, such as 20261124T120000Z; else the one below
#   MINIGTS_LIFELINE          a descriptor that the caller holds open: when it closes, all that was started here ends
#
# A line "source: …" of what is said here tells what was taken from where, and what was passed over and why. A place that
# lacks something, or whose index is past its date, is passed over. Only a snapshot, whose address has a day, may be older
# than its index says: it never changes, and what is taken from it has a signature, or a sum that is known here.

# shellcheck source=provision/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly suite=trixie
readonly suite_day=${MINIGTS_ARCHIVE_DAY:-20261124T120000Z} # of Debian 13.8, with which all was proven
readonly keys=${MINIGTS_DEBIAN_KEYS:-/usr/share/keyrings/debian-archive-keyring.gpg}
readonly debians_own=http://deb.debian.org/debian
readonly debians_archives='http://archive.debian.org/debian http://snapshot.debian.org/archive/debian/DAY'
readonly no_source='no source:' # how a reason begins that is told as it is

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

# make_debian_root TARGET OPTION…: by mmdebstrap, with these options besides those that always hold, from the first place
# that has it all. A TARGET of - is made below TMPDIR, in a directory that goes with this script, whatever ends it.
make_debian_root() {
  [[ $1 != - ]] || make_passing_directory
  from_first_place "$suite_day" "Debian $suite" mmdebstrap_from "$@"
}

# from_first_place DAY WHAT COMMAND ARGUMENT…: runs COMMAND PLACE ARGUMENT… until a place has all that it takes. WHAT is for
# messages. A failure that is not of the place ends it: one whose cause is not known, or exit code 2.
from_first_place() {
  local day=$1 what=$2 command=$3 place why said status passed=()
  shift 3
  said=$(mktemp)
  for place in $(places "$day"); do
    info "source: $what from $(without_password "$place")"
    status=0 why=''
    "$command" "$place" "$@" 2>&1 | tee "$said" || status=${PIPESTATUS[0]}
    ((status == 0 || status == 2)) || why=$(why_not "$said")
    [[ -n $why ]] || break
    info "source: $what is not to be had from $(without_password "$place"): $why"
    passed+=("$(without_password "$place"): $why")
  done
  rm "$said"
  [[ -z $why ]] || fatal "$no_source $what with all that it takes is nowhere to be had ($(joined '; ' "${passed[@]}"))"
  return "$status"
}

# mmdebstrap_from PLACE TARGET OPTION…: what another place has left in TARGET goes first.
mmdebstrap_from() {
  local place=$1 target=$2 mode=unshare mounts=() dated=() hidden=()
  shift 2
  [[ $target == - || ! -d $target ]] || as_root find "$target" -xdev -mindepth 1 -delete
  # What root mounts in there is seen by nobody else and goes with the last process; others have namespaces anyhow.
  ((EUID != 0)) || mode=root mounts=(unshare --mount --propagation private)
  ! is_dated "$place" || dated=(--aptopt='Acquire::Check-Valid-Until "false"')
  # A mirror's password is the user's own: whoever reads the image's files does not get it.
  # shellcheck disable=SC2016
  [[ $place != *@* ]] || hidden=(--customize-hook='sed -i "s|://[^/@ ]*@|://|" "$1/etc/apt/sources.list"')
  HOME=/nonexistent "${mounts[@]}" mmdebstrap --mode="$mode" --variant=minbase --keyring="$keys" --skip=check/signed-by \
    --aptopt='Apt::Install-Recommends "false"' \
    --aptopt='Acquire::Retries "3"' \
    --aptopt='Acquire::http::Timeout "20"' \
    "${dated[@]}" "$@" "${hidden[@]}" "$suite" "$target" "$place"
}

# why_not LOG: what the place lacks, as apt or a hook has said it; empty where it is something else that failed.
why_not() {
  sed -nE \
    -e 's/^E: Release file for .* is expired \(invalid since ([^)]*)\).*/its index is past its date (\1 ago)/p' \
    -e "s/^E: The repository '[^']*' does not have a Release file.*/it has no such suite/p" \
    -e "s/^E: The repository '[^']*' is not signed.*/its index is not signed by a key that is known/p" \
    -e 's/^E: Failed to fetch ([^ ]*) +(.*[^ ]) +\[IP: .*\]$/\2 (\1)/p' \
    -e 's/^E: Failed to fetch ([^ ]*) +(.*)/\2 (\1)/p' \
    -e 's/^E: Unable to locate package (.*)/it has no package \1/p' \
    -e "s/^E: Package '(.*)' has no installation candidate/it has no package \1/p" \
    -e "s/^E: Version '([^']*)' for '([^']*)' was not found/it has no version \1 of \2/p" \
    -e 's/^lacks: (.*)/\1/p' \
    "$1" | tr -s ' ' | head -n 1
}

# joined SEPARATOR WORD…
joined() {
  local separator=$1 all
  shift
  printf -v all "%s$separator" "$@"
  printf %s "${all%"$separator"}"
}

# Sets TMPDIR to a directory of this script's own below it. Open to all, for what is in there may belong to the root of a
# user namespace. It is locked for as long as anything runs that was started here.
make_passing_directory() {
  remove_abandoned_directories
  passing=$(mktemp -d "${TMPDIR:?}/minigts-root.XXXXXX")
  chmod 1777 "$passing"
  exec {passing_lock}<"$passing"
  flock "$passing_lock"
  TMPDIR=$passing
  trap remove_passing_directory EXIT
}

# What still runs in there has been told to end; it may write for a moment longer.
remove_passing_directory() {
  local tries
  [[ -z ${lifeline:-} ]] || kill "$lifeline" 2>/dev/null || true
  for tries in {1..40}; do
    ! remove_root "$passing" || return 0
    sleep 0.5
  done
  info "after $tries tries $passing is still there"
}

# A script that was killed could not remove its own, which may be gigabytes.
remove_abandoned_directories() {
  local old lock
  for old in "${TMPDIR:?}"/minigts-root.*; do
    [[ -O $old && -d $old && ! -L $old ]] || continue
    exec {lock}<"$old"
    if flock --nonblock "$lock"; then
      info "removing $old, which a build that was killed has left"
      remove_root "$old" || info "$old is still there"
    fi
    exec {lock}<&-
  done
}

# remove_root DIRECTORY: what is in there may belong to the root of a user namespace.
remove_root() {
  as_root find "$1" -xdev -mindepth 1 -delete &>/dev/null || true
  rm -rf --one-file-system -- "$1" 2>/dev/null
}

# places DAY: where Debian may be had, an address a line, best first. Debian's archives have what its mirrors had until
# DAY.
places() {
  local mirror
  mirror=$(configured_mirror)
  # shellcheck disable=SC2086
  printf '%s\n' "${mirror:-$debians_own}" ${MINIGTS_DEBIAN_FALLBACKS-$debians_own $debians_archives} |
    sed "s|/DAY\b|/$1|" | awk '{ same = $0; sub("/+$", "", same) } !(same in seen) { print } { seen[same] }'
}

# without_password PLACE: the address as it may be shown.
without_password() { printf '%s\n' "$1" | sed 's|://[^/@]*@|://|'; }

# is_dated PLACE: whether it is a snapshot.
is_dated() { [[ $1 =~ /[0-9]{8}T[0-9]{6}Z/*$ ]]; }

# The Debian mirror that this machine's own apt uses. On another distribution there is none.
configured_mirror() {
  if [[ -n ${MINIGTS_DEBIAN_MIRROR:-} ]]; then
    echo "$MINIGTS_DEBIAN_MIRROR"
  else
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
      awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }'
  fi
}

# locked LOCK DIRECTORY EXCEPT: options, a line each, by which make_debian_root takes the versions of a file of lines NAME
# VERSION, but for the package EXCEPT, and passes over a place that has not all of them. Keeps a file in DIRECTORY.
# shellcheck disable=SC2016
locked() {
  awk -v except="$3" 'NF == 2 && $1 != except {
    sub(":.*", "", $1)
    printf "Package: %s\nPin: version %s\nPin-Priority: 1001\n\n", $1, $2
  }' "$1" >"$2/lock-preferences"
  echo "--setup-hook=upload ${2@Q}/lock-preferences /etc/apt/preferences.d/lock"
  echo '--extract-hook=APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-cache dumpavail | awk '"'$(not_there)'"' "$1/etc/apt/preferences.d/lock" -'
  echo '--customize-hook=rm "$1/etc/apt/preferences.d/lock"'
}

# A program of awk's on one line, for preferences and what apt has: fails with what the second lacks of the first.
not_there() {
  tr -d '\n' <<'PROGRAM'
FILENAME != "-" { if ($1 == "Package:") name = $2; if ($2 == "version") wanted[name] = $3; next }
$1 == "Package:" { name = $2 }
$1 == "Version:" { there[name " " $2] }
END {
  for (name in wanted) if (!(name " " wanted[name] in there)) { count++; example = name " " wanted[name] }
  if (count) { print "lacks: it has not " count " of the versions that are wanted, among them " example; exit 1 }
}
PROGRAM
}

# add_suite NAME: a setup hook by which packages of another suite can be had from the same mirror.
# shellcheck disable=SC2016
add_suite() {
  printf 'sed -n "s|^deb \\(.*\\) %s .*|deb [check-valid-until=no] \\1 %s main|p" ' "$suite" "$1"
  printf '"$1/etc/apt/sources.list" >"$1/etc/apt/sources.list.d/%s.list"' "$1"
}

# apart DIRECTORY COMMAND…: an apt program with lists and sources of its own, which are DIRECTORY/sources.list: nothing of
# this machine's is read or changed, but for how mirrors are reached.
apart() {
  local own=$1 program=$2
  shift 2
  mkdir -p "$own"/{lists,cache}/partial
  "$program" -o "Dir::Etc::sourcelist=$own/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o "Dir::State::lists=$own/lists" -o "Dir::Cache=$own/cache" -o APT::Sandbox::User=root -o APT::Architecture=amd64 \
    -o Acquire::Check-Date=true -o Acquire::Check-Valid-Until=true -o Acquire::Languages=none -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@"
}
