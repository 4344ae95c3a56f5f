# start.sh HOST…: starts this host's member of a cluster of these hosts. A member that was there before goes on with what
# is on its disk.
set -eu
routes=
for host in "$@"; do
  routes="$routes nats://$host:6222,"
done
cat >/etc/nats.conf <<END
server_name: $(hostname)
listen: 0.0.0.0:4222
jetstream { store_dir: /root/nats }
cluster { name: lab, listen: 0.0.0.0:6222, routes: [${routes%,} ] }
END
setsid nats-server --config /etc/nats.conf </dev/null >>/var/log/nats.log 2>&1 &
