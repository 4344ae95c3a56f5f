# start.sh [PRIMARY]: starts this host's PostgreSQL, as a standby of that host's, or as a primary. One that was there
# before goes on with what is on its disk.
set -eu
data=/var/lib/postgresql/lab
bin=$(echo /usr/lib/postgresql/*/bin)
as_postgres() { runuser -u postgres -- "$@"; }

if [ ! -e $data/PG_VERSION ]; then
  install -d -m 700 -o postgres $data
  if [ $# -eq 0 ]; then
    as_postgres "$bin/initdb" -D $data --auth trust --no-sync >/dev/null
    echo 'host all,replication all 10.0.0.0/8 trust' >>$data/pg_hba.conf
  else
    until as_postgres "$bin/pg_basebackup" -h "$1" -D $data -R -C -S "$(hostname)" --checkpoint fast --no-sync; do
      sleep 0.2
    done
  fi
fi
install -d -o postgres /run/postgresql
touch /var/log/postgresql.log
chown postgres /var/log/postgresql.log
cd /
as_postgres "$bin/pg_ctl" -D $data -l /var/log/postgresql.log -w start \
  -o "-c listen_addresses=* -c cluster_name=$(hostname) -c wal_receiver_timeout=3s -c wal_sender_timeout=3s"
