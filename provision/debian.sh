# shellcheck shell=bash
# Sourced by builds in a Debian root, such as those of the hosts' image and their kernel. They run as root, or as any user
# with unprivileged user namespaces.
#
# Environment:
#   MINIGTS_DEBIAN_MIRROR     a Debian mirror; by default the one in this machine's apt configuration, or else Debian's own
#   MINIGTS_DEBIAN_FALLBACKS  further places to try in this order, separated by spaces; DAY in an address is replaced by a
#                             day on which Debian's snapshot archive had what is wanted. Empty for none
#   MINIGTS_DEBIAN_KEYS       the keyring whose signatures are accepted; by default Debian's
#   MINIGTS_ARCHIVE_DAY       the day of the Debian root, such as 20261124T120000Z; by default the one below
#   MINIGTS_LIFELINE          a descriptor that the caller holds open: when it closes, all that was started here ends
#
# An output line "source: …" says what was taken from which place, or which place was passed over and why. A place is
# passed over if it lacks something or its index is past its date. Only the index of a snapshot, whose address contains a
# day, may be past its date: a snapshot never changes, and files from it are checked by a signature or a known sum.

# shellcheck source=provision/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

umask 022             # what is made here has the same modes, whoever makes it
export LC_ALL=C.UTF-8 # and apt's messages, which why_not reads, are English

readonly suite=trixie
readonly suite_day=${MINIGTS_ARCHIVE_DAY:-20261124T120000Z} # of Debian 13.8, with which all was proven
readonly keys=${MINIGTS_DEBIAN_KEYS:-/usr/share/keyrings/debian-archive-keyring.gpg}
readonly debians_own=http://deb.debian.org/debian
readonly debians_archives='http://archive.debian.org/debian http://snapshot.debian.org/archive/debian/DAY'
readonly no_source='no source:' # the prefix of an error that minigts shows unchanged
readonly lacks='lacks: '        # the prefix of a hook's message about what a place lacks

# as_root COMMAND…: as root, or as root of a user namespace that has this user's subordinate ids. Such a root may not
# enter the user's own directories.
as_root() {
  if ((EUID == 0)); then "$@"; else mmdebstrap --unshare-helper "$@"; fi
}

# Ends this script's process group when the caller ends, which closes its end of the pipe. The script must lead its group.
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

# make_debian_root TARGET OPTION…: makes a Debian root by mmdebstrap, with these and the usual options, from the first
# place that has all packages. If TARGET is -, the root is below TMPDIR, in a directory that is removed with this script.
make_debian_root() {
  [[ $1 != - ]] || make_passing_directory
  from_first_place "$suite_day" "Debian $suite" mmdebstrap_from "$@"
}

# make_locked_root LOCK EXCEPT TARGET OPTION…: as make_debian_root, with the packages of LOCK and no others, but for the
# package EXCEPT; from the first place that has them with the same bytes. LOCK has lines NAME VERSION SHA-256. Where no
# place has them, the root gets what the first place has that day, and the script's $output/unlocked a line that says why.
make_locked_root() {
  local lock=$1 except=$2 target=$3 why='' passed=() lacking='' status=0 pinned
  shift 3
  [[ $target != - ]] || make_passing_directory
  mapfile -t pinned < <(locked "$lock" "${output:?}" "$except")
  try_places "$suite_day" "Debian $suite as locked" mmdebstrap_from "$target" "${pinned[@]}" "$@" || status=$?
  rm -f -- "$output/lock-preferences"
  [[ -n $why ]] || return "$status"
  [[ -n $lacking ]] || nowhere "Debian $suite" "${passed[@]}"
  why="the packages of $(basename "$(dirname "$lock")")/${lock##*/} are nowhere to be had ($(joined '; ' "${passed[@]}"))"
  info "source: unproven: $why; the build goes on with what there is"
  printf '%s\n' "$why" >>"$output/unlocked"
  from_first_place "$suite_day" "Debian $suite" mmdebstrap_from "$target" "$@"
}

# write_lock LOCK OPTION…: writes to LOCK the packages of a root that is made now with these options, from the first place
# that has all; without packages that are in no index.
# shellcheck disable=SC2016
write_lock() {
  local lock=$1 seen sums='APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-cache dumpavail'
  shift
  seen=$(mktemp)
  TMPDIR=/var/tmp make_debian_root - --format=null "$@" \
    --customize-hook="{ chroot \"\$1\" dpkg-query -W -f 'installed: \${Package} \${Version}\\n'; $sums; } | awk '$(with_sums)'" >"$seen"
  sed -n 's/^locked: //p' "$seen" | LC_ALL=C sort >"$lock"
  rm "$seen"
  [[ -s $lock ]] || fatal "no package of the new root is in an index"
}

# from_first_place DAY WHAT COMMAND ARGUMENT…: runs COMMAND PLACE ARGUMENT… for each place until it succeeds. WHAT names
# the result in messages. It stops at a failure with exit code 2, and at one that why_not does not explain.
from_first_place() {
  local why='' passed=() lacking='' status=0
  try_places "$@" || status=$?
  [[ -z $why ]] || nowhere "$2" "${passed[@]}"
  return "$status"
}

# try_places DAY WHAT COMMAND ARGUMENT…: does so, and leaves in the caller's variables: `why`, which is empty unless all
# places were passed over; `passed`, each place with the reason; `lacking`, not empty if a hook found something lacking.
try_places() {
  local day=$1 what=$2 command=$3 place said status=0
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
    ! grep -q "^$lacks" "$said" || lacking=yes
  done
  rm "$said"
  return "$status"
}

# nowhere WHAT REASON…: ends the script.
nowhere() {
  local what=$1
  shift
  fatal "$no_source $what with all that it takes is nowhere to be had ($(joined '; ' "$@"))"
}

# mmdebstrap_from PLACE TARGET OPTION…: empties TARGET, which a try of another place may have filled, and runs mmdebstrap.
mmdebstrap_from() {
  local place=$1 target=$2 mode=unshare mounts=() dated=()
  shift 2
  [[ $target == - || ! -d $target ]] || as_root find "$target" -xdev -mindepth 1 -delete
  # Root gets a mount namespace, so that its mounts end with the last process; other users have namespaces in any case.
  ((EUID != 0)) || mode=root mounts=(unshare --mount --propagation private)
  ! is_dated "$place" || dated=(--aptopt='Acquire::Check-Valid-Until "false"')
  in_clean_environment "${mounts[@]}" mmdebstrap --mode="$mode" --variant=minbase --keyring="$keys" --skip=check/signed-by \
    --aptopt='Apt::Install-Recommends "false"' \
    --aptopt='Acquire::Retries "3"' \
    --aptopt='Acquire::http::Timeout "20"' \
    "${dated[@]}" "$@" "$suite" "$target" "$place"
}

# in_clean_environment COMMAND…: with nothing of this user's environment but how a mirror is reached and what recipes are
# told. Programs in the new root would go by the rest: Python's, which compile to other places, compilers, make.
in_clean_environment() {
  local name kept=()
  while read -r name; do kept+=("$name=${!name}"); done < <(
    compgen -e | grep -xE 'PATH|TMPDIR|LC_ALL|SOURCE_DATE_EPOCH|APT_CONFIG|MINIGTS_.*|GO[A-Z]*|SSL_CERT_.*|[A-Za-z]+_(proxy|PROXY)'
  )
  env -i "${kept[@]}" HOME=/nonexistent "$@"
}

# why_not LOG: prints what the place lacks, by the messages of apt or a hook; nothing for any other failure.
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
    -e "s/^$lacks(.*)/\\1/p" \
    "$1" | tr -s ' ' | head -n 1
}

# joined SEPARATOR WORD…
joined() {
  local separator=$1 all
  shift
  printf -v all "%s$separator" "$@"
  printf %s "${all%"$separator"}"
}

# Sets TMPDIR to a new directory below it. All may write there, since the root of a user namespace may own files in it. The
# directory is locked as long as a process runs that was started here.
make_passing_directory() {
  remove_abandoned_directories
  passing=$(mktemp -d "${TMPDIR:?}/minigts-root.XXXXXX")
  chmod 1777 "$passing"
  exec {passing_lock}<"$passing"
  flock "$passing_lock"
  TMPDIR=$passing
  trap remove_passing_directory EXIT
}

# Processes that have been told to end may still write there for a moment, so it is tried again.
remove_passing_directory() {
  local tries
  [[ -z ${lifeline:-} ]] || kill "$lifeline" 2>/dev/null || true
  for tries in {1..40}; do
    ! remove_root "$passing" || return 0
    sleep 0.5
  done
  info "after $tries tries $passing is still there"
}

# Removes the directories of scripts that were killed, which may hold gigabytes.
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

# remove_root DIRECTORY: also if files in it belong to the root of a user namespace.
remove_root() {
  as_root find "$1" -xdev -mindepth 1 -delete &>/dev/null || true
  rm -rf --one-file-system -- "$1" 2>/dev/null
}

# places DAY: prints the addresses of places that may have Debian's packages, best first, with the snapshot of DAY.
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

# Prints MINIGTS_DEBIAN_MIRROR, or the Debian mirror of this machine's apt; nothing on another distribution.
configured_mirror() {
  if [[ -n ${MINIGTS_DEBIAN_MIRROR:-} ]]; then
    echo "$MINIGTS_DEBIAN_MIRROR"
  else
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
      awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }'
  fi
}

# locked LOCK DIRECTORY EXCEPT: prints options, one a line, by which make_debian_root installs the versions in LOCK, a file
# of lines NAME VERSION, except for the package EXCEPT, and passes over a place that lacks one. A line may have the package's
# SHA-256, too: a place with other bytes is then passed over, and so is one where packages come along that LOCK does not
# have. Writes a file to DIRECTORY.
# shellcheck disable=SC2016
locked() {
  local preferences=/etc/apt/preferences.d/lock
  awk -v except="$3" 'NF > 1 && !/^#/ && $1 != except {
    sub(":.*", "", $1)
    printf "Explanation: %s\nPackage: %s\nPin: version %s\nPin-Priority: 1001\n\n", $3, $1, $2
  }' "$1" >"$2/lock-preferences"
  echo "--setup-hook=upload ${2@Q}/lock-preferences $preferences"
  echo '--extract-hook=APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-cache dumpavail | awk '"'$(not_there)'"' "$1'"$preferences"'" -'
  printf '%s\n' '--customize-hook=chroot "$1" dpkg-query -W -f "\${Package}\n" | '"awk -v except='$3' '$(not_alone)' \"\$1$preferences\" -"
  echo '--customize-hook=rm "$1'"$preferences"'"'
}

# The three below print an awk program on one line.

# Its input is apt's preferences and then its packages; it fails if a version is missing, or has another sum.
not_there() {
  tr -d '\n' <<'PROGRAM'
FILENAME != "-" { if ($1 == "Explanation:") sum = $2; if ($1 == "Package:") name = $2; if ($2 == "version") wanted[name " " $3] = sum; next }
$1 == "Package:" { name = $2 }
$1 == "Version:" { each = name " " $2; there[each] = "" }
$1 == "SHA256:" { there[each] = $2 }
END {
  for (each in wanted) if (!(each in there)) { count++; example = each }
  if (count) { print "lacks: it has not " count " of the versions that are wanted, among them " example; exit 1 }
  for (each in wanted) if (wanted[each] != "" && wanted[each] != there[each]) { count++; example = each }
  if (count) { print "lacks: it has other bytes of " count " of the packages, among them " example; exit 1 }
}
PROGRAM
}

# Its input is apt's preferences and then the names of installed packages; it fails unless the preferences, if they have sums,
# have just these packages and `except`.
not_alone() {
  tr -d '\n' <<'PROGRAM'
FILENAME != "-" { if ($1 == "Explanation:" && $2 != "") whole = 1; if ($1 == "Package:") wanted[$2]; next }
{ there[$1] }
END {
  if (!whole) exit 0;
  for (name in there) if (!(name in wanted) && name != except) { count++; example = name }
  if (count) { print "lacks: packages outside the lock come with it (" count "), among them " example; exit 1 }
  for (name in wanted) if (!(name in there)) { count++; example = name }
  if (count) { print "lacks: packages of the lock do not come with it (" count "), among them " example; exit 1 }
}
PROGRAM
}

# Its input is the installed packages, as lines `installed: NAME VERSION`, and then all of apt's; it prints those that are
# in both as lines of a lock.
with_sums() {
  tr -d '\n' <<'PROGRAM'
$1 == "installed:" { installed[$2 " " $3]; next }
$1 == "Package:" { name = $2 }
$1 == "Version:" { each = name " " $2 }
$1 == "SHA256:" && each in installed { print "locked: " each " " $2 }
PROGRAM
}

# add_suite NAME: prints a setup hook that adds another suite of the same mirror.
# shellcheck disable=SC2016
add_suite() {
  printf 'sed -n "s|^deb \\(.*\\) %s .*|deb [check-valid-until=no] \\1 %s main|p" ' "$suite" "$1"
  printf '"$1/etc/apt/sources.list" >"$1/etc/apt/sources.list.d/%s.list"' "$1"
}

# apart DIRECTORY COMMAND…: runs an apt program with the sources in DIRECTORY/sources.list, and its own lists and cache. Of
# this machine's apt it uses only the settings for reaching mirrors, and it changes nothing.
apart() {
  local own=$1 program=$2
  shift 2
  mkdir -p "$own"/{lists,cache}/partial
  "$program" -o "Dir::Etc::sourcelist=$own/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o "Dir::State::lists=$own/lists" -o "Dir::Cache=$own/cache" -o APT::Sandbox::User=root -o APT::Architecture=amd64 \
    -o Acquire::Check-Date=true -o Acquire::Check-Valid-Until=true -o Acquire::Languages=none -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@"
}
