#!/bin/sh
# tunnels.sh INTERFACE: makes this host's end of five tunnels to the other host of the interface's subnet, whose addresses
# end in .1 and .2. The ends' addresses within tunnel K are 192.168.K.1 and .2, K being 1 for IP-in-IP, 2 for GRE, 3 for
# Geneve, 4 for ESP with AES-GCM and 5 for ESP with AES-CBC and HMAC-SHA-256.
set -eu

own=$(ip -4 -o address show dev "$1" | sed -n 's|.* inet \([0-9.]*\)/.*|\1|p')
n=${own##*.}
m=$((3 - n))
other=${own%.*}.$m

ip link add t1 type ipip local "$own" remote "$other"
ip link add t2 type gre local "$own" remote "$other"
ip link add t3 type geneve id 7 remote "$other"
for k in 1 2 3; do
  ip address add "192.168.$k.$n/30" dev "t$k"
  ip link set "t$k" up
done

# protect K SPI ALGORITHMS...: the packets between both addresses of K are carried in ESP. A key is the same each time: it
# keeps nothing secret.
key=0x000102030405060708090a0b0c0d0e0f
protect() {
  k=$1 spi=$2
  shift 2
  ip address add "192.168.$k.$n/32" dev lo
  ip route add "192.168.$k.$m/32" via "$other" src "192.168.$k.$n"
  ip xfrm state add src "$own" dst "$other" proto esp spi "$spi" mode tunnel "$@"
  ip xfrm state add src "$other" dst "$own" proto esp spi "$spi" mode tunnel "$@"
  ip xfrm policy add src "192.168.$k.$n" dst "192.168.$k.$m" dir out \
    tmpl src "$own" dst "$other" proto esp spi "$spi" mode tunnel
  ip xfrm policy add src "192.168.$k.$m" dst "192.168.$k.$n" dir in \
    tmpl src "$other" dst "$own" proto esp mode tunnel
}
protect 4 0x104 aead 'rfc4106(gcm(aes))' "${key}10111213" 128
protect 5 0x105 enc 'cbc(aes)' "$key" auth-trunc 'hmac(sha256)' "${key}${key#0x}" 128
