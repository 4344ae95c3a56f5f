# start.sh HOST…: starts this host's member of an etcd cluster of these hosts. A member that was there before goes on with
# what is on its disk.
set -eu
address() { getent ahostsv4 "$1" | awk 'NR == 1 { print $1 }'; }
own=$(address "$(hostname)") members=
for host in "$@"; do
  members=$members,$host=http://$(address "$host"):2380
done
setsid etcd --name "$(hostname)" --data-dir /root/etcd \
  --initial-cluster "${members#,}" --initial-cluster-state new \
  --listen-peer-urls "http://$own:2380" --initial-advertise-peer-urls "http://$own:2380" \
  --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls "http://$own:2379" \
  </dev/null >>/var/log/etcd.log 2>&1 &
