# start.sh MASTER: starts this host's Valkey, as a replica of that host's unless it is its own, and its Sentinel.
set -eu
address() { getent ahostsv4 "$1" | awk 'NR == 1 { print $1 }'; }
master=$(address "$1") own=$(address "$(hostname)")
mkdir -p /root/valkey
cd /root/valkey

replica=
[ "$own" = "$master" ] || replica="--replicaof $master 6379"
# shellcheck disable=SC2086 # its words, or none
valkey-server --daemonize yes --bind 0.0.0.0 --protected-mode no --save '' --logfile /var/log/valkey.log \
  --repl-ping-replica-period 1 --repl-timeout 5 --replica-announce-ip "$own" $replica

cat >sentinel.conf <<END
daemonize yes
bind 0.0.0.0
protected-mode no
logfile /var/log/sentinel.log
sentinel announce-ip $own
sentinel monitor main $master 6379 2
sentinel down-after-milliseconds main 2000
sentinel failover-timeout main 10000
END
valkey-sentinel /root/valkey/sentinel.conf
until valkey-cli -p 26379 ping && valkey-cli ping; do sleep 0.1; done
