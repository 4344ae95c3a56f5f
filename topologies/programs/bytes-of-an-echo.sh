#!/bin/sh
# bytes-of-an-echo.sh INTERFACE ADDRESS SIZE: how many bytes an echo request with so many bytes of data has on the
# interface, whatever it is wrapped in, by the interface's own counter, with the 14 bytes of Ethernet. The median of five,
# since a question for a neighbour may be sent beside one.
set -eu

sent() { cat "/sys/class/net/$1/statistics/tx_bytes"; }

one() {
  before=$(sent "$1")
  ping -q -c 1 -s "$3" "$2" >/dev/null
  echo $(($(sent "$1") - before))
}

ping -q -c 2 -i 0.2 -s "$3" "$2" >/dev/null # keys are agreed upon then
found=$(for _ in 1 2 3 4 5; do one "$@"; done | sort -n | sed -n 3p)
echo "bytes $found"
