#!/bin/bash
# Builds the root file system of a host. As root, or as any user with unprivileged user namespaces.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#   build.sh --pack OUTPUT after it, with what ./finish has said on a host of that root in OUTPUT/store.tar
#   build.sh --undo OUTPUT removes OUTPUT, and what a build that was killed has left elsewhere
#
# The same packages give the same bytes, but for the mirror's name in /etc/apt: nothing in the file system tells of when,
# where or by whom it was built.
#
# Environment:
#   MINIGTS_IMAGE_MB       size of the file system in MB
#   MINIGTS_ALSO           a directory with more: its `packages` are installed too, and its `customize.sh` runs inside the
#                          new root before the image's own; what that leaves in /usr/lib/minigts/boot is taken out
#   MINIGTS_PACKAGE_LOCK   a file of lines NAME VERSION, such as an image's packages.lock: the versions that are taken. A
#                          place that has others is passed over
#   MINIGTS_ARCHIVE_DAY    the day whose snapshot has them, when that is not the one of ../debian.sh
#   and those of ../debian.sh and ../fetch.sh. ./sources says which User-Mode Linux kernels were proven
#
# Unpacks some 700 MB, for root into OUTPUT, for others into /var/tmp, after the agent's compiler there (../agent).
# Leaves in OUTPUT: root.ext4, boot/ (the User-Mode Linux kernel with the libraries it runs with), packages.lock, and the
# file `unproven`, with the kernel's version, if nobody has proven that; until --pack also the unpacked root.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/../debian.sh"

readonly kernel_suite=sid
readonly kernel_package=user-mode-linux
readonly image_mb=${MINIGTS_IMAGE_MB:-2500}

# What every build gives to whatever asks for the time or for a name nobody else has. The day is Debian 13's release.
export SOURCE_DATE_EPOCH=1754697600
readonly uuid=6d696e69-6774-4300-8000-000000000001

# What the image holds for Debian's own sake or a screen's: a host shows no manual, draws nothing and speaks English.
readonly left_out=('/usr/share/doc/*' '/usr/share/man/*' '/usr/share/info/*' '/usr/share/locale/*' '/usr/share/X11/*'
  '/usr/share/bash-completion/*' '/usr/share/lintian/*' '/usr/share/bug/*' '/usr/lib/*/libLLVM*' '/usr/lib/*/libgallium*'
  '/usr/lib/*/libz3*' '/usr/lib/*/dri/*' /usr/bin/ctr /usr/bin/containerd-shim /usr/bin/containerd-shim-runc-v1)

# Sets `work`: where the root is unpacked; `work` in the output is or leads to it, so that it can be undone. Not under
# the output when it is not root who builds: root of a user namespace may not enter the user's own directories.
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

# The kernel comes by its sum from wherever it is to be had. It is installed with all else, by a path that is the same
# outside the new root and in it: by itself, it would leave other files of dpkg's behind, and so another image. fetch.sh leads no process group, and ends with this one.
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

# Customize hooks, a line each, for what else is to be made of the new root.
also() {
  [[ -n ${MINIGTS_ALSO:-} ]] || return 0
  echo "--customize-hook=copy-in ${MINIGTS_ALSO@Q} /tmp"
  echo "--customize-hook=chroot \"\$1\" /tmp/${MINIGTS_ALSO##*/}/customize.sh"
}

# It leads no process group, and ends with this one.
compile_agent() { env -u MINIGTS_LIFELINE "$here/../agent/build.sh" "$output"; }

# Hooks may not read this user's directories, so the recipe is copied in and runs there.
# shellcheck disable=SC2016
bootstrap() {
  local hooks locked=()
  mapfile -t hooks < <(also)
  [[ -z ${MINIGTS_PACKAGE_LOCK:-} ]] || mapfile -t locked < <(locked "$MINIGTS_PACKAGE_LOCK" "$output" "$kernel_package")
  make_debian_root "$work" --format=directory --include="$(packages)" --components=main,non-free \
    "${left_out[@]/#/--dpkgopt=path-exclude=}" \
    "${locked[@]}" \
    --essential-hook="copy-in $fetched /var/tmp" \
    --include="$fetched/source.deb" \
    --customize-hook="rm -r \"\$1$fetched\"" \
    --customize-hook="upload ${here@Q}/apt-preferences /etc/apt/preferences.d/kernel" \
    --customize-hook="$(add_suite "$kernel_suite")" \
    --customize-hook='rm -f "$1"/etc/ssh/ssh_host_*' \
    "${hooks[@]}" \
    --customize-hook="copy-in ${here@Q} ${output@Q}/agent /tmp" \
    --customize-hook='chroot "$1" /tmp/image/customize.sh'
}

# What mmdebstrap leaves, some of it to root and some to others.
take_out_leavings() { as_root find "$work/dev" "$work/var/lib/apt/lists" -mindepth 1 -delete; }

# What packages have brought keeps its times; what was made here was made on the same day in every build.
settle_times() { as_root find "$work" -xdev -newermt "@$begun" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

# By the new root's own program, whatever version this machine has. Written through a descriptor, which is all that the
# root of a user namespace needs; nobody else gets at the file.
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

# Docker's store, as a host has made it, in the place of what it was made from.
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
  fetch_kernel
  compile_agent
  make_work_directory
  bootstrap
  remove_fetched
  rm -f -- "$output/lock-preferences" "$output/agent"
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
