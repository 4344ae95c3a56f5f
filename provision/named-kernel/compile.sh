#!/bin/bash
# Runs inside the Debian root, by confined.sh: compiles the kernel of /tmp/tree, which has its patches, in that tree, so
# that the next build of it compiles what has changed. Leaves its products in /tmp/out.
#
#   compile.sh VERSION     VERSION of Debian's package; empty where only the sources have one
#
# /tmp/wanted has a line for each option, as ../kernel/config has, the later ones over the earlier; /tmp/asked those of
# them that must be met. What of the others this version cannot have goes to /tmp/out/lacks.
set -euo pipefail

readonly tree=/tmp/tree out=/tmp/out version=$1

make_um() { make --no-print-directory -C "$tree" ARCH=um "$@"; }

# is_before VERSION OTHER
is_before() { [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

# Prints the options that this version is to have, as in .config.
options() {
  local own line until
  own=$(make_um -s kernelversion)
  while read -r line until; do
    [[ $line == [A-Z0-9]* ]] || continue
    [[ -z $until ]] || is_before "$own" "${until#\# before }" || continue
    echo "CONFIG_$line"
  done | awk -F = '{ last[$1] = $0; if (!($1 in place)) { place[$1] = ++count; name[count] = $1 } }
    END { for (i = 1; i <= count; i++) print last[name[i]] }' | sed -E 's/^(CONFIG_[A-Z0-9_a-z]+)=n$/# \1 is not set/'
}

# An option that is not there counts as one that is not set.
unmet() { grep -E '^CONFIG_' "$1" | grep -vxFf "$tree/.config" || true; }

configure() {
  options </tmp/wanted >/tmp/all
  options </tmp/asked >/tmp/must
  make_um -s KCONFIG_ALLCONFIG=/tmp/all allnoconfig
  unmet /tmp/all >"$out/lacks"
  local refused
  refused=$({
    unmet /tmp/must
    grep -oP '^# \KCONFIG_\S+(?= is not set)' /tmp/must | sed 's/$/=/' | grep -Ff - "$tree/.config"
  } || true)
  [[ -z $refused ]] || {
    echo "error: options: $(tr '\n' ' ' <<<"$refused")" >&2
    exit 2
  }
}

# The same name, day and place whoever builds it: a kernel's random numbers begin with them.
compile() {
  export KBUILD_BUILD_USER=minigts KBUILD_BUILD_HOST=minigts KBUILD_BUILD_VERSION=1
  KBUILD_BUILD_TIMESTAMP="Debian $(source_version)" make_um -j"$(nproc)"
}

source_version() { if [[ -n $version ]]; then echo "$version"; else make_um -s kernelversion; fi; }

keep_products() {
  local release modules
  release=$(make_um -s kernelrelease)
  modules=$out/root/usr/lib/modules/$release
  install -D -m 644 -t "$modules" "$tree"/modules.builtin "$tree"/modules.builtin.modinfo
  : >"$modules/modules.order"
  ln -s usr/lib "$out/root/lib"
  depmod -b "$out/root" -a "$release"
  mkdir "$out/modules"
  mv "$modules" "$out/modules/"
  rm -r "$out/root"
  strip -o "$out/linux" "$tree/linux"
  cp "$tree/.config" "$out/config"
  source_version >"$out/version"
}

configure
compile
keep_products
