#!/bin/bash
# Runs inside the Debian root that build.sh makes: compiles the kernel of `config` from what ../fetch.sh has left in
# /tmp/fetched. Leaves its products in /tmp/out.
set -euo pipefail

readonly fetched=/tmp/fetched tree=/tmp/tree out=/tmp/out

# Debian's package has the sources as one archive.
unpack_source() {
  mkdir "$tree" "$out"
  if [[ -e $fetched/source.deb ]]; then
    dpkg-deb --fsys-tarfile "$fetched/source.deb" | tar -x -O --wildcards './usr/src/linux-source-*.tar.*' >"$fetched/source.tar"
    rm "$fetched/source.deb"
  fi
  tar -x -C "$tree" --strip-components=1 -f "$fetched/source.tar"
  rm "$fetched/source.tar"
}

# In the order of their numbers; each says at its head why it is there. A patch must fit in whole: a source that has moved
# is looked at by somebody.
apply_patches() {
  local each
  for each in "${0%/*}"/patches/*.patch; do
    echo "${each##*/}"
    patch -d "$tree" -p1 --forward --fuzz=0 <"$each"
  done
}

# Every line of `config` that this version can have must be met: a name that is gone would take what it stands for with it
# in silence.
configure() {
  local version until line
  version=$(make -s -C "$tree" ARCH=um kernelversion)
  while read -r line until; do
    [[ $line == [A-Z0-9]* ]] || continue
    [[ -z $until ]] || is_before "$version" "${until#\# before }" || continue
    echo "CONFIG_$line"
  done <"${0%/*}/config" >/tmp/wanted
  [[ ! -e $fetched/unproven ]] || sed -i 's/^\(CONFIG_LOCALVERSION=".*\)"$/\1-unproven"/' /tmp/wanted
  make -s -C "$tree" ARCH=um KCONFIG_ALLCONFIG=/tmp/wanted allnoconfig
  ! grep '^CONFIG_' /tmp/wanted | grep -vxFf "$tree/.config" >&2 || {
    echo "error: the kernel cannot have the lines above" >&2
    exit 1
  }
}

# is_before VERSION OTHER
is_before() { [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

# A kernel's random numbers begin with its own name, which must not tell when and where it was built: one seed would not
# give the same numbers on two machines. Not silent: its lines are the progress that is shown.
compile() {
  export KBUILD_BUILD_USER=minigts KBUILD_BUILD_HOST=minigts KBUILD_BUILD_VERSION=1
  KBUILD_BUILD_TIMESTAMP="Debian $(source_version)" make -C "$tree" ARCH=um -j"$(nproc)"
}

# Of Debian's package, else what the sources say themselves.
source_version() { grep . "$fetched/version" || make -s -C "$tree" ARCH=um kernelversion; }

# modprobe finds every module built in, so a script that loads one need not know. The directory's name says for which
# kernel.
keep_products() {
  local release modules
  release=$(make -s -C "$tree" ARCH=um kernelrelease)
  modules=/usr/lib/modules/$release
  install -D -m 644 -t "$modules" "$tree"/modules.builtin "$tree"/modules.builtin.modinfo
  : >"$modules/modules.order"
  depmod -a "$release"
  mkdir "$out/modules"
  cp -r "$modules" "$out/modules/"
  strip -o "$out/linux" "$tree/linux"
  echo "$(source_version)$([[ ! -e $fetched/unproven ]] || echo ' (unproven)')" >"$out/version"
}

unpack_source
apply_patches
configure
compile
keep_products
