# shellcheck shell=bash
# Sourced by overlays whose hosts find each other in an etcd store on the leader.

# shellcheck source=provision/overlays/daemons.sh
source "$OVERLAYS/daemons.sh"

readonly etcd_url=http://$LEADER_ADDRESS:2379
readonly etcd_data=/var/lib/minigts/etcd

etcd() { ETCDCTL_API=3 etcdctl --endpoints "$etcd_url" --command-timeout=5s "$@"; }

etcd_answers() { curl -sf -o /dev/null "$etcd_url/health"; }

# start_etcd: on the leader, with both its interfaces, the older for programs of the studies' time; what a lab keeps there need not survive it.
start_etcd() {
  mkdir -p "$etcd_data"
  start_daemon etcd etcd --data-dir "$etcd_data" --listen-client-urls "$etcd_url" --advertise-client-urls "$etcd_url" \
    --listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync --enable-v2 --log-level warn
  wait_until 60 etcd_answers || fatal "etcd did not start: $(tail -n 5 "$(daemon_log etcd)")"
}

stop_etcd() {
  stop_daemon etcd
  rm -rf "$etcd_data"
}
