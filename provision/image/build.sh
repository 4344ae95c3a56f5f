#!/bin/bash
# Builds the root file system of a host. As root, or as any user with unprivileged user namespaces.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#   build.sh --pack OUTPUT afterwards, with the output of ./finish on a host with that root in OUTPUT/store.tar
#   build.sh --undo OUTPUT removes OUTPUT, and what a killed build has left elsewhere
#   build.sh --lock        writes ./packages.lock, the packages of that root, from what the mirror has now
#
# The same packages give the same bytes: nothing in the file system depends on when, where or by whom it was built, nor on
# the mirror. Hosts have Debian's own address in /etc/apt.
#
# Environment:
#   MINIGTS_IMAGE_MB       size of the file system in MB
#   MINIGTS_ALSO           a further recipe: its `packages` are installed, too, and its `customize.sh` runs inside the new
#                          root before the image's; files that it leaves in /usr/lib/minigts/boot are moved to OUTPUT/boot
#   MINIGTS_PACKAGE_LOCK   a file of lines NAME VERSION, such as an image's packages.lock, with the versions to install in
#                          place of those in ./packages.lock. A place that lacks one of them is passed over
#   MINIGTS_ARCHIVE_DAY    the day whose snapshot has them, if it is not the one in ../debian.sh
#   and those of ../debian.sh and ../fetch.sh. ./sources lists the User-Mode Linux kernels that were proven
#
# Needs some 700 MB, for root in OUTPUT, for others in /var/tmp, and 1.2 GB in /var/tmp, where the agent is compiled
# meanwhile (../agent). Leaves in OUTPUT: root.ext4, boot/ (the User-Mode Linux kernel with its libraries),
# packages.lock, and, if the kernel was not proven, a file `unproven` with its version, and, if the packages of a lock
# were not to be had, `unlocked` with the reason; until --pack also the unpacked root.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/../debian.sh"

readonly packages_lock=$here/packages.lock
readonly kernel_suite=sid
readonly kernel_package=user-mode-linux
readonly image_mb=${MINIGTS_IMAGE_MB:-2500}

# The time and the UUID in every build, so that builds do not differ. The day is that of Debian 13's release.
export SOURCE_DATE_EPOCH=1754697600
readonly uuid=6d696e69-6774-4300-8000-000000000001

# Files that hosts do not need: documentation, translations, graphics, and programs of Docker that are not used.
readonly left_out=('/usr/share/doc/*' '/usr/share/man/*' '/usr/share/info/*' '/usr/share/locale/*' '/usr/share/X11/*'
  '/usr/share/bash-completion/*' '/usr/share/lintian/*' '/usr/share/bug/*' '/usr/lib/*/libLLVM*' '/usr/lib/*/libgallium*'
  '/usr/lib/*/libz3*' '/usr/lib/*/dri/*' /usr/bin/ctr /usr/bin/containerd-shim /usr/bin/containerd-shim-runc-v1)

# Makes the directory in which the root is unpacked, and sets `work` to it; OUTPUT/work is that directory or a link to it,
# for --undo. For users other than root it is outside OUTPUT, since root of a user namespace may not enter their
# directories.
make_work_directory() {
  if ((EUID == 0)); then
    work=$output/work
    mkdir "$work"
  else
    as_root true || fatal "unprivileged user namespaces do not work here; minigts doctor says more. Or build it as root"
    work=$(as_root mktemp -d /var/tmp/minigts-image.XXXXXX)
    ln -s "$work" "$output/work"
    as_root chmod 755 "$work"
  fi
}

remove_fetched() {
  local target
  target=$(readlink -e -- "$output/fetched") || return 0
  rm -rf --one-file-system -- "$target" "$output/fetched"
}

remove_work_directory() {
  local target
  target=$(readlink -e -- "$output/work") || return 0
  as_root rm -rf --one-file-system -- "$target"
  rm -f -- "$output/work"
}

packages() { grep -hv '^#' "$here/packages" ${MINIGTS_ALSO:+"$MINIGTS_ALSO/packages"} | paste -sd,; }

# Fetches the kernel's package, by its sum, from the first place that has it. It is installed together with all others, by
# a path that is the same outside the new root and in it: installed alone, it would change dpkg's files and so the image.
# fetch.sh is in this script's process group, and ends with it.
fetch_kernel() {
  local locked=''
  [[ -z ${MINIGTS_PACKAGE_LOCK:-} ]] || locked=$(awk -v name="$kernel_package" '$1 == name { print $2 }' "$MINIGTS_PACKAGE_LOCK")
  fetched=$(mktemp -d /var/tmp/minigts-fetched.XXXXXX)
  ln -s "$fetched" "$output/fetched"
  chmod 755 "$fetched"
  env -u MINIGTS_LIFELINE MINIGTS_SOURCE="${MINIGTS_SOURCE:-$locked}" \
    "$here/../fetch.sh" "$here/sources" "$fetched" 'minigts image build'
  [[ ! -e $fetched/unproven ]] || cp "$fetched/version" "$output/unproven"
}

# Prints the customize hooks for the recipe in MINIGTS_ALSO, one a line.
also() {
  [[ -n ${MINIGTS_ALSO:-} ]] || return 0
  echo "--customize-hook=copy-in ${MINIGTS_ALSO@Q} /tmp"
  echo "--customize-hook=chroot \"\$1\" /tmp/${MINIGTS_ALSO##*/}/customize.sh"
}

# Compiles the agent while the root is made. It is in this script's process group, and ends with it. Its messages are kept
# apart until it has ended.
begin_agent() {
  mkdir "$output/agent"
  env -u MINIGTS_LIFELINE "$here/../agent/build.sh" "$output/agent" &>"$output/agent/log" &
  agent=$!
}

# Puts the agent into the root. Root of a user namespace may not enter OUTPUT, so it is given a descriptor.
install_agent() {
  local status=0
  wait "$agent" || status=$?
  cat "$output/agent/log" >&2
  ((status == 0)) || fatal "the hosts' agent could not be compiled"
  [[ ! -e $output/agent/unlocked ]] || cat "$output/agent/unlocked" >>"$output/unlocked"
  # shellcheck disable=SC2016
  as_root sh -c 'cat >"$1" && chmod 755 "$1"' sh "$work/usr/lib/minigts/agent" <"$output/agent/agent"
  rm -r -- "$output/agent"
}

# Prints the options by which the root gets its packages, one a line.
options_of_packages() {
  printf '%s\n' "--include=$(packages)" --components=main,non-free "${left_out[@]/#/--dpkgopt=path-exclude=}" \
    "--essential-hook=copy-in $fetched /var/tmp" "--include=$fetched/source.deb"
}

# Sets `make` to the command that makes the root with the packages that are wanted: the user's, those of the image's lock,
# or, with a further recipe, what there is.
choose_packages() {
  local -a users
  if [[ -n ${MINIGTS_PACKAGE_LOCK:-} ]]; then
    mapfile -t users < <(locked "$MINIGTS_PACKAGE_LOCK" "$output" "$kernel_package")
    make=(make_debian_root "$work" "${users[@]}")
  elif [[ -n ${MINIGTS_ALSO:-} ]]; then
    make=(make_debian_root "$work")
  else
    make=(make_locked_root "$packages_lock" "$kernel_package" "$work")
  fi
}

# Prints a hook that names Debian's own address in place of the mirror's, which may have a password, too, and leaves out
# what a snapshot takes beside.
# shellcheck disable=SC2016
name_debian() {
  printf 'sed -i "s|^deb \(\[[^]]*\] \)*[^ ]*|deb \\1%s|" "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*.list && ' "$debians_own"
  printf 'sed -i /Check-Valid-Until/d "$1/etc/apt/apt.conf.d/99mmdebstrap"'
}

# Hooks may not read this user's directories, so the recipe is copied in and runs there.
# shellcheck disable=SC2016
bootstrap() {
  local -a hooks options make
  mapfile -t hooks < <(also)
  mapfile -t options < <(options_of_packages)
  choose_packages
  "${make[@]}" --format=directory "${options[@]}" \
    --customize-hook="rm -r \"\$1$fetched\"" \
    --customize-hook="upload ${here@Q}/apt-preferences /etc/apt/preferences.d/kernel" \
    --customize-hook="$(add_suite "$kernel_suite")" \
    --customize-hook='rm -f "$1"/etc/ssh/ssh_host_*' \
    "${hooks[@]}" \
    --customize-hook="copy-in ${here@Q} /tmp" \
    --customize-hook='chroot "$1" /tmp/image/customize.sh' \
    --customize-hook="$(name_debian)"
}

# The kernel's package is not in it: ./sources has its sum.
renew_lock() {
  local -a options
  fetch_kernel
  mapfile -t options < <(options_of_packages)
  write_lock "$packages_lock" "${options[@]}"
  remove_fetched
  rm -r -- "$output"
}

# Removes what mmdebstrap leaves, which differs between root and other users.
take_out_leavings() { as_root find "$work/dev" "$work/var/lib/apt/lists" -mindepth 1 -delete; }

# Files from packages keep their times; all files that this build has made get the same time in every build.
settle_times() { as_root find "$work" -xdev -newermt "@$begun" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

# Makes the file system by the new root's mke2fs, so that this machine's version does not matter. It writes through a
# descriptor, since the root of a user namespace may not enter OUTPUT, which nobody else may enter meanwhile either.
make_file_system() {
  settle_times
  chmod 700 "$output"
  : >"$output/root.ext4"
  chmod 666 "$output/root.ext4"
  MKE2FS_CONFIG=$work/etc/mke2fs.conf as_root "$work/usr/lib64/ld-linux-x86-64.so.2" \
    --library-path "$work/usr/lib/x86_64-linux-gnu" "$work/usr/sbin/mke2fs" -q -F -t ext4 -O ^has_journal -m 0 \
    -U "$uuid" -E "hash_seed=$uuid,lazy_itable_init=0,root_owner=0:0" -d "$work" \
    /dev/fd/3 "${image_mb}M" 3<>"$output/root.ext4"
  chmod 644 "$output/root.ext4"
  chmod 755 "$output"
}

take_out_kernel() {
  mkdir "$output/boot"
  as_root tar -c -C "$work/usr/lib/minigts/boot" . | tar -x --no-same-owner -C "$output/boot"
  as_root rm -r "$work/usr/lib/minigts/boot"
  as_root cat "$work/usr/lib/minigts/packages.lock" >"$output/packages.lock"
}

# Puts Docker's store, which a host has made, in place of the files that it was made from.
take_store() {
  as_root rm "$work"/usr/lib/minigts/{finish,measure.tar}
  as_root tar -x -m -C "$work/var/lib" <"$output/store.tar"
  rm "$output/store.tar"
}

undo() {
  remove_fetched
  remove_work_directory
  rm -rf -- "$output"
}

build() {
  end_with_caller
  begin_agent
  fetch_kernel
  make_work_directory
  bootstrap
  install_agent
  remove_fetched
  rm -f -- "$output/lock-preferences"
  take_out_kernel
  take_out_leavings
  make_file_system
}

pack() {
  end_with_caller
  work=$(readlink -e -- "$output/work")
  take_store
  make_file_system
  remove_work_directory
}

readonly begun=$EPOCHSECONDS
case $1 in
--lock)
  output=$(mktemp -d)
  readonly output
  end_with_caller
  renew_lock
  ;;
--undo)
  readonly output=$2
  undo
  ;;
--pack)
  readonly output=$2
  pack
  ;;
*)
  readonly output=$1
  build
  ;;
esac
