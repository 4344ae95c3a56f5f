#!/bin/sh
# bytes-of-an-echo.sh INTERFACE ADDRESS SIZE: how many bytes an echo request with so many bytes of data has on the
# interface, whatever it is wrapped in, by the interface's own counter, with the 14 bytes of Ethernet. The mean of ten.
set -eu

sent() { cat "/sys/class/net/$1/statistics/tx_bytes"; }

ping -q -c 2 -i 0.2 -s "$3" "$2" >/dev/null # neighbours and keys are known then
before=$(sent "$1")
ping -q -c 10 -i 0.1 -s "$3" "$2" >/dev/null
echo "bytes $((($(sent "$1") - before)))"
