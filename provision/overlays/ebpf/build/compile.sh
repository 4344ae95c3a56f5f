#!/bin/bash
# Compiles the data path, by the compiler for eBPF.
#
#   compile.sh OUTPUT        OUTPUT is an existing directory
set -euo pipefail

readonly output=$1
cd "$(dirname "${BASH_SOURCE[0]}")"
# The headers are the kernel's, which asks for the machine's own kind.
bpf-gcc -O2 -Wall -Werror -isystem /usr/include -isystem "/usr/include/$(uname -m)-linux-gnu" \
  -c datapath.c -o "$output/datapath.o"
