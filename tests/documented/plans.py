"""For each page with commands: what they presume, how they end, and what is not run and why."""

from __future__ import annotations

from documented.pages import Plan

CHAIN = "minigts up topologies/chain6.yaml --overlay none"
ANEW = f"minigts down --all && {CHAIN}"
RUN = "./minigts run experiments/multihop.yaml"
"""Ends with 1: two claims of its documents do not hold in virtual time."""
THIS_MACHINE = "changes this machine"
KMEMLEAK = (
    "minigts exec a -- mount -t debugfs none /sys/kernel/debug",
    "minigts exec a -- sh -c 'cd /sys/kernel/debug; echo scan >kmemleak; sleep 6; echo scan >kmemleak; cat kmemleak'",
)
NOT_HERE = "needs what this machine need not have"
OTHER_TEST = "is run by "

ASSIGNMENTS = {
    "": (
        "cd docs/assignments/hijack/handout",
        "minigts up topology.yaml",
        "minigts exec as1 -- birdc show route",
        "minigts test --minigts grading/topology.yaml --minigts-time virtual grade_hijack.py",
    ),
    "bufferbloat/": (
        "minigts up topology.yaml",
        "minigts exec home -- ping -c 5 server",
        "minigts run experiment.yaml --dry-run",
        "minigts run experiment.yaml",
    ),
    "mini-internet/": (
        "minigts up topology.yaml --certify quick",
        "minigts cp oslo.conf oslo:/root/bird.conf",
        "minigts exec oslo -- birdc configure",
    ),
    "hijack/": (
        "minigts up topology.yaml",
        "minigts exec as1 -- birdc show route",
        "minigts exec as1 -- curl --interface 10.1.0.1 http://10.4.0.80/",
        "minigts cp rogue-same.conf as6:/root/rogue.conf",
        "minigts exec as6 -- birdc configure",
        "minigts exec as1 -- birdc show route all 10.4.0.0/16",
        "minigts cp filter.conf as2:/root/filter.conf",
        "minigts exec as2 -- birdc configure",
    ),
}
"""What students and teachers type, by the assignment's page."""
PLANS = {
    "README.md": Plan(
        codes={RUN: 1},
        not_run={"./minigts test": "would run itself"},
    ),
    "docs/install.md": Plan(
        first="mkdir release",
        before={"./minigts up topologies/pair.yaml": "minigts down --all"},
        not_run={
            "minigts setup uml": THIS_MACHINE,
            "minigts setup uml --shared": THIS_MACHINE,
            "minigts setup uml --shared --from classroom.tar.gz": THIS_MACHINE,
            "pipx install '.[report,serve]'": THIS_MACHINE,
            "minigts up pair.yaml": f"{OTHER_TEST}tests/live/test_package.py, where minigts is installed",
            "./minigts image export classroom.tar.gz --wheels": f"{OTHER_TEST}tests/live/test_handed_on.py",
            "./minigts image import classroom.tar.gz --sha256 SUM": f"{OTHER_TEST}tests/live/test_handed_on.py",
            "docs/site/build": "tests/checks.py, with which .ci/run begins, runs it with --check",
            "./minigts release build release": f"{OTHER_TEST}tests/unit/release",
            "./minigts release deb .": f"{OTHER_TEST}tests/unit/release",
            "minigts setup uml --from minigts-1.0.0-parts-x86_64.tar.gz": f"{OTHER_TEST}tests/unit/release",
            "minigts setup uml --from http://127.0.0.1:8000/minigts-1.0.0-parts-x86_64.tar.gz --sha256 SUM": (
                f"{OTHER_TEST}tests/unit/release"
            ),
            "minisign -G -p minigts.pub -s minigts.key": "asks for a password",
            "./minigts release sign release --key minigts.key": f"{OTHER_TEST}tests/unit/release",
            "minigts setup uml --from http://127.0.0.1:8000/minigts-1.0.0-parts-x86_64.tar.gz "
            "--public-key minigts.pub": (f"{OTHER_TEST}tests/unit/release"),
            "./minigts release verify release": f"{OTHER_TEST}tests/unit/release",
            "./minigts release verify release --public-key minigts.pub": f"{OTHER_TEST}tests/unit/release",
            "pipx uninstall minigts": THIS_MACHINE,
            "rm -r ~/.cache/minigts ~/.local/state/minigts": THIS_MACHINE,
            "rm -r ~/.local/share/minigts": THIS_MACHINE,
        },
    ),
    "docs/lessons/README.md": Plan(
        before={
            "minigts lesson routes/5 check": "echo '- no-route@bra' >>answers.yaml",
            "minigts grade submissions -o grades.csv": "cd ../../..; mkdir submissions; cp -r lesson-1 submissions/ana",
        },
        codes={"minigts lesson 1 check": 1, "minigts lesson 13 check": 1},
        not_run=dict.fromkeys(
            (
                "minigts lesson --lessons ~/course",
                "minigts lesson --lessons ~/course 50 start --seed ana",
                "minigts grade submissions --lessons ~/course --again",
            ),
            f"{OTHER_TEST}tests/live/test_own_lesson.py",
        ),
    ),
    "docs/which-network-for-my-cluster.md": Plan(
        not_run={"minigts run docs/examples/choose/choose.yaml": "takes ten minutes to half an hour"},
    ),
    "docs/class.md": Plan(
        before={
            "minigts grade handed-in --seeded --again -o grades.csv": (
                "cd ..; mkdir handed-in; cp -r lesson-1 handed-in/ana"
            ),
        },
        codes={"minigts lesson 1 check": 1},
        not_run={
            "git clone REPOSITORY /opt/minigts": THIS_MACHINE,
            "ln -s /opt/minigts/minigts /usr/local/bin/minigts": THIS_MACHINE,
            "minigts setup uml --shared": THIS_MACHINE,
            **dict.fromkeys(
                (
                    "cp -r /opt/minigts/docs/examples/own-lesson /srv/course",
                    "minigts lesson 50 start --seed ana",
                ),
                f"{OTHER_TEST}tests/live/test_own_lesson.py",
            ),
            **dict.fromkeys(
                (
                    "bench/run classroom --users 25 --every 12",
                    "bench/run classroom --users 25 --topology three.yaml",
                ),
                "takes a whole machine",
            ),
        },
    ),
    **{
        f"docs/assignments/{page}README.md": Plan(
            not_run=dict.fromkeys(commands, f"{OTHER_TEST}tests/live/test_assignments.py, as the grading does it")
        )
        for page, commands in ASSIGNMENTS.items()
    },
    "docs/own-programs.md": Plan(
        not_run=dict.fromkeys(
            (
                "minigts up shop.yaml",
                "minigts status",
                "minigts exec --container store -- redis-cli ping",
                "minigts exec mil -- curl -sS http://10.255.0.1:8080/",
                "minigts test --minigts shop.yaml test_shop.py",
                "minigts link bra lju down",
                "minigts link bra lju up",
                "minigts exec ams -- sleep 120",
                "minigts up shop.yaml --overlay flannel",
                "minigts down",
            ),
            f"{OTHER_TEST}tests/live/test_own_programs.py",
        ),
    ),
    "docs/lab.md": Plan(
        first="echo 'print(1)' >server.py; mkdir site; echo hello >site/index.html",
        before={
            "minigts exec ams -- ping -c 3 bra": CHAIN,
            "minigts up topologies/chain6.yaml --overlay swarm": "minigts down --all",
            "minigts exec --container ams -- ping -c 3 bra": "minigts up topologies/chain6.yaml --overlay swarm",
            "minigts ssh-config >lab.ssh": ANEW,
            "minigts link ams bra down": "minigts down --all; minigts up two.yaml",
            "minigts set ams-bra delay=20ms loss=1%": ANEW,
            "minigts play": "minigts down --all; minigts up topologies/changing.yaml",
            "minigts top": ANEW,
            "minigts check --overlay": "minigts up topologies/chain6.yaml --overlay swarm",
            "minigts add host par ams rtt=6ms rate=20mbit": ANEW,
            "minigts up my.yaml --dry-run": "minigts down --all; minigts up my.yaml; sed -i 's/10ms/12ms/' my.yaml",
            "minigts kill bra": ANEW,
            "minigts capture --container ams icmp": "minigts up topologies/chain6.yaml --overlay swarm",
            "minigts down --keep": ANEW,
            "curl -o big -w '%{time_total} %{speed_download}\\n' http://127.0.0.2:18080/big": (
                "for try in {1..100}; do curl -so index http://127.0.0.2:18080/ && break; sleep 0.3; done"
            ),
            "head -c 100000000 /dev/urandom >hundred": "minigts down --all; minigts up topologies/pair.yaml",
        },
        by_hand=(
            "minigts top",
            "minigts top --json --every 5 >log",
            "minigts status --watch",
            "minigts events --follow | jq -r .event",
            "minigts capture ams-bra",
            "minigts capture ams tcp port 5201 --count 100",
            "minigts capture --container ams icmp",
        ),
        files={
            "two.yaml": "name: two\nhosts: {ams: {}, bra: {}}\nlinks:\n- {ends: [ams, bra], rtt: 10ms}\n"
            "- {ends: [ams, bra], rtt: 20ms}\n",
            "my.yaml": "name: mine\nhosts: {ams: {}, bra: {}}\nlinks: [{ends: [ams, bra], rtt: 10ms}]\n",
        },
        not_run={
            "time minigts load image.tar": f"{OTHER_TEST}tests/live/test_containers.py",
            "time minigts up lab.yaml": f"{OTHER_TEST}tests/live/test_own_software.py",
            'mkdir fetched; time provision/packages/fetch.sh "$(minigts image path)/root.ext4" "$PWD/fetched" '
            "nginx-light redis-server": f"{OTHER_TEST}tests/live/test_own_software.py",
            "rsync -a -e 'ssh -F lab.ssh' site/ ams:/srv/site/": f"{OTHER_TEST}tests/live/test_by_ssh.py",
            "ansible -i lab.yaml all -m ping": f"{OTHER_TEST}tests/live/test_by_ssh.py",
            "sftp -F lab.ssh ams": "asks for commands",
            "minigts kill bra --power-cut --seed 7": f"{OTHER_TEST}tests/live/test_power_cuts.py",
            "minigts capture ams-bra | wireshark -k -i -": NOT_HERE,
        },
    ),
    "docs/agents.md": Plan(
        not_run={
            "./minigts mcp --role read --http --port 8138 --token-file token": OTHER_TEST + "tests/live/test_mcp.py",
        },
    ),
    "docs/arena.md": Plan(
        not_run={
            "./minigts arena run routes mtu --seeds 1-2 --into scores": OTHER_TEST + "tests/live/test_arena.py",
            "./minigts arena report scores": OTHER_TEST + "tests/live/test_arena.py",
            "./minigts arena run --into scores": "plays 360 incidents",
            "./minigts arena run --agent nothing --into scores": "plays 360 incidents",
            "./minigts arena start services/3 --agent my-model": OTHER_TEST + "tests/live/test_arena.py",
            "./minigts arena call run host=gva command='kubectl get pods,services -A -o wide'": OTHER_TEST
            + "tests/live/test_arena_cluster.py",
            "./minigts mcp --role repair": OTHER_TEST + "tests/live/test_arena.py",
            "bench/run arena --into arena-proof.jsonl": "takes hours on a busy machine",
        },
    ),
    "docs/serve.md": Plan(
        by_hand=("./minigts serve",),
        not_run={"minigts serve --port 8137 --token-file /home/ana/minigts-token": "names somebody's directory"},
    ),
    "docs/experiments.md": Plan(codes={RUN: 1}),
    "docs/testing.md": Plan(
        before={
            "./minigts test --minigts my.yaml --junitxml results.xml tests_of_mine/": (
                "cp docs/examples/three-hosts.yaml my.yaml; mkdir tests_of_mine; "
                "cp docs/examples/test_three_hosts.py tests_of_mine/"
            )
        },
        not_run={
            "pytest tests/": f"{OTHER_TEST}tests/live/test_examples.py",
            "./minigts test --minigts my.yaml --minigts-on uml,mininet,vagrant test_my.py": (
                f"{OTHER_TEST}tests/live/test_examples.py, one provider at a time"
            ),
        },
    ),
    "docs/results.md": Plan(
        before={
            "minigts bundle results/multihop-20261122-100000": (
                "minigts run experiments/multihop.yaml --quick && mv results/multihop-* "
                "results/multihop-20261122-100000"
            )
        },
        not_run={
            "minigts plot results/udp-sweep-20261121-100000 results/udp-later-20261122-100000 paper.yaml --to paper": (
                "takes two long measurements; tests/unit/report draws of several runs"
            )
        },
    ),
    "docs/campaigns.md": Plan(
        before={
            "minigts run --resume results/distance-20261123-100000 --on local": (
                "mv results/distance-* results/distance-20261123-100000"
            )
        },
        not_run={
            "minigts run experiments/ --time virtual --on local": "takes hours",
            "minigts run experiments/distance.yaml --on tcp://192.0.2.1:8786": NOT_HERE,
            "minigts run experiments/distance.yaml --on engine.yaml": NOT_HERE,
            **dict.fromkeys(
                (
                    *(f"minigts run experiments/distance.yaml --share {n}/3 --results share-{n}" for n in (1, 2, 3)),
                    "minigts merge share-1/* share-2/* share-3/*",
                ),
                f"{OTHER_TEST}tests/live/test_shares.py, with a shorter experiment",
            ),
        },
    ),
    "docs/explore.md": Plan(
        not_run=dict.fromkeys(
            (
                "minigts explore my.yaml test_my.py --faults faults.yaml --seeds 1000",
                "minigts replay results/explore-my-20261127-160112 --seed 417",
                "minigts replay results/explore-my-20261127-160112 --seed 417 --until 12.3s",
                "cd docs/examples/explore",
                "minigts explore sentinel.yaml valkey/test_sentinel.py::test_no_acknowledged_write_is_lost "
                "--faults valkey/faults.yaml --seeds 8",
                "minigts replay results/explore-sentinel-20261127-164158 --seed 1 --shrink",
                "minigts replay results/explore-sentinel-20261127-164158 --seed 1 --shrunk",
                "minigts explore etcd.yaml etcd/test_etcd.py::test_etcd_keeps_its_promise "
                "--faults etcd/faults.yaml --seeds 1000",
                "minigts explore etcd-watch.yaml etcd-watch/test_watch.py --faults etcd-watch/faults.yaml --seeds 1",
                "minigts explore nats.yaml nats/test_nats.py --faults nats/faults.yaml --seeds 1-8",
                "minigts explore nats.yaml nats/test_nats.py --faults nats/power.yaml --seeds 1-8",
                "minigts explore etcd-alone.yaml etcd/test_alone.py --faults etcd/power.yaml --seeds 6",
                "minigts explore postgresql.yaml postgresql/test_standby.py::test_an_asynchronous_standby_has_all "
                "--faults postgresql/faults.yaml --seeds 4",
                "minigts explore postgresql-transactions.yaml postgresql/test_transactions.py --seeds 3",
                "minigts bundle results/explore-my-20261127-160112",
                "minigts replay explore-my-20261127-160112.zip --seed 417 --trust",
            ),
            f"{OTHER_TEST}tests/live/test_explored_seeds.py, test_replayed_often.py, test_valkey_example.py, "
            "test_etcd_example.py, test_etcd_watch_example.py, test_nats_example.py or test_postgresql_example.py",
        ),
    ),
    "docs/reports/a-class-that-measures.md": Plan(
        not_run={
            "bench/run classroom --users 25 --every 12": "takes a quarter of an hour and more",
            "bench/run arena --into arena-proof.jsonl": "takes a quarter of an hour and more",
        },
    ),
    "docs/reports/mptcp-diag-waits-for-one-listener.md": Plan(
        not_run={"minigts suite run kselftest kselftest_install --only net/mptcp:diag.sh --times 2": NOT_HERE},
    ),
    "docs/reports/forwarding-tests-of-linux.md": Plan(
        not_run={
            "minigts suite run kselftest kselftest_install --only 'net/forwarding:*custom_multipath_hash.sh' "
            "--only net/forwarding:bridge_fdb_learning_limit.sh --only net/forwarding:bridge_mdb.sh "
            "--only net/forwarding:tc_flower_l2_miss.sh": NOT_HERE
        },
    ),
    "docs/reports/topotests-look-once.md": Plan(
        not_run={
            "minigts suite run frr tests/topotests --only 'bgp_basic_functionality_topo1/*' "
            "--only 'bgp_default_originate/*2links' --only 'bgp_l3vpn_label_export/*' "
            "--only 'bgp_vrf_dynamic_route_leak/*topo1'": NOT_HERE
        },
    ),
    "docs/reports/packetdrill-lines-2-ms-off.md": Plan(
        not_run={"minigts suite run packetdrill $D --program ./packetdrill --tolerance 1000": NOT_HERE},
    ),
    "docs/reports/tests-without-flakes.md": Plan(
        not_run={
            "minigts kernel build mine --source .": NOT_HERE,
            "minigts suite run packetdrill tools/testing/selftests/net/packetdrill --program ./packetdrill "
            "--kernel mine --load 0,8 --in-a-lab 8": NOT_HERE,
        },
    ),
    "docs/reports/packetdrill-timer-slack.md": Plan(
        not_run={
            "minigts suite run packetdrill $D --program ./packetdrill --only tcp_timestamping_partial "
            "--tolerance 50 --times 3": NOT_HERE
        },
    ),
    "docs/reports/hostfs-leaves-its-path.md": Plan(
        not_run=dict.fromkeys(
            (
                "minigts kernel build checked --debug kmemleak",
                "minigts up topologies/pair.yaml --kernel checked",
                *KMEMLEAK,
            ),
            f"compiles a kernel, or needs one: {OTHER_TEST}tests/live/test_kernels.py",
        )
    ),
    "docs/light-hosts.md": Plan(
        not_run={
            "minigts up topologies/large/thousand.yaml --certify quick": f"{OTHER_TEST}test_light.py, with fewer hosts"
        }
    ),
    "docs/netlab.md": Plan(
        not_run=dict.fromkeys(
            (
                "minigts netlab up topology.yml",
                "minigts netlab validate",
                "minigts netlab connect r1",
                "minigts netlab down --cleanup",
                "bench/run netlab netlab/tests/integration --device frr --device bird",
                "bench/run netlab bgplab --device frr --create",
                "bench/run netlab bgplab --device frr",
            ),
            NOT_HERE,
        ),
    ),
    "docs/suites.md": Plan(
        not_run=dict.fromkeys(
            (
                "minigts suite run packetdrill $D --program ./packetdrill",
                "minigts suite run kselftest ~/kselftest --only 'net/mptcp:*'",
                "minigts suite run kselftest ~/kselftest --only 'net/forwarding:*' --times 2 --load 0,8",
                "minigts suite run kselftest ~/kselftest --only 'net:*'",
                "minigts suite run tc-testing ~/linux/tools/testing/selftests/tc-testing",
                "minigts suite run iproute2 ~/iproute2/testsuite",
                "minigts suite run frr ~/frr/tests/topotests --only 'ospf_topo1/*'",
                "minigts suite run kselftest ~/kselftest --only 'net/forwarding:bridge_activity_notify.sh' "
                "--installed ~/new",
                "minigts suite run frr ~/frr/tests/topotests --only 'ospf_instance_redistribute/*' --installed ~/new",
                "minigts suite run packetdrill $D --program ./packetdrill --only 'tcp_close_no_rst ipv4' --capture",
                "minigts kernel build checked --debug kasan,lockdep",
                "minigts suite run packetdrill $D --program ./packetdrill --only 'tcp_close_no_rst ipv4' "
                "--kernel checked",
                "minigts suite run packetdrill $D --program ./packetdrill --load 0,8 --in-a-lab 8",
                "minigts suite run kselftest ~/kselftest --only 'net/mptcp:*' "
                "--env SELFTESTS_MPTCP_LIB_OVERRIDE_FLAKY=1 --load 0,8",
                "minigts suite run packetdrill $D --program ./packetdrill --tolerance 1000 --in-a-lab 8",
                "minigts kernel build hwsim --config EXPERT=y --config WIRELESS=y --config WLAN=y --config CFG80211=y "
                "--config CFG80211_CERTIFICATION_ONUS=y --config CFG80211_REQUIRE_SIGNED_REGDB=n "
                "--config CFG80211_DEBUGFS=y --config CFG80211_WEXT=y --config MAC80211=y "
                "--config MAC80211_RC_MINSTREL=y --config MAC80211_MESH=y --config MAC80211_DEBUGFS=y "
                "--config MAC80211_HWSIM=y --config RFKILL=y --config BRIDGE_EBT_ARP=y --config BRIDGE_EBT_IP6=y "
                "--config BRIDGE_EBT_PKTTYPE=y --config BRIDGE_EBT_ARPREPLY=y --config FTRACE=y "
                "--config ENABLE_DEFAULT_TRACERS=y",
                "minigts suite run hwsim ~/hostap --kernel hwsim --only sae --only 'ap_*'",
                "minigts suite run hwsim ~/hostap --kernel hwsim --only sae --env HWSIM_TESTS='sae sae_pwe_*'",
                "minigts suite run hwsim ~/hostap --kernel hwsim",
                "minigts suite run hwsim ~/hostap --kernel hwsim --only ap_open --only scan --times 3 --same-output",
            ),
            NOT_HERE,
        ),
    ),
    "docs/kubernetes.md": Plan(
        not_run=dict.fromkeys(
            (
                "minigts up topologies/kubernetes.yaml",
                "minigts kubectl get nodes -o wide",
                "minigts kubectl get pods -o wide",
                "minigts load web.tar",
                "minigts kubectl apply -f app.yaml",
            ),
            "compiles for half an hour; tests/live/test_kubernetes_cluster.py and test_kubernetes_pods.py have one",
        )
        | {"bench/run bump 1.35.4": "writes into the project; tests/unit/test_bump.py does it elsewhere"},
    ),
    "docs/policy.md": Plan(shown={"shop.yaml": "name: shop"}),
    "docs/routing-protocols.md": Plan(
        not_run=dict.fromkeys(
            (
                "./minigts up docs/examples/frr/frr-flap.yaml",
                "./minigts exec r1 -- ping -c 2 198.51.100.1",
                "./minigts play",
                "./minigts exec r1 -- vtysh -c 'show ip route static'",
                "./minigts run docs/examples/frr/flaps.yaml",
                "./minigts compare results/frr-flaps-*",
            ),
            "fetches FRR from Debian's mirror",
        ),
    ),
    "docs/imports.md": Plan(
        files={
            "lab.clab.yml": "name: two\ntopology:\n  nodes:\n    a: {kind: linux, image: alpine}\n"
            "    b: {kind: linux, image: alpine}\n  links:\n    - endpoints: ['a:eth1', 'b:eth1']\n",
            "some-lab/lab.conf": 'a[0]="A"\nb[0]="A"\n',
        },
        not_run={
            "minigts import Padi.gml --part 2 -o second.yaml": "takes a file of the Topology Zoo",
            "bench/run foreign DIR": "a bench over a folder of one's own",
        },
    ),
    "docs/internet.md": Plan(
        not_run={
            "minigts up internet.yaml": "thirty hosts, which another test brings up in a smaller Internet",
            "minigts up large.yaml --certify quick": "a thousand hosts, and 4 GB",
            "minigts import 20261101.as-rel.txt --ases 100 -o core.yaml": "takes a file of CAIDA's",
            "minigts exec s1 -- birdc -s /run/minigts/underlay/s1/bird.ctl show route all": "asks that lab",
            "minigts exec s1 -- ping -c 3 s5": "asks that lab",
            "minigts explain s1-s5": "asks that lab",
        },
    ),
    "docs/satellites.md": Plan(
        not_run={
            "minigts up shell.yaml": "fourteen hosts; a test plays a smaller shell",
            "minigts play": "needs that lab",
            "minigts up iridium.yaml --certify quick": "68 hosts; a test plays a smaller shell",
            "minigts play vienna -- ping -c 280 -i 1 tokyo": "needs that lab",
        },
    ),
    "docs/kernels.md": Plan(
        not_run=dict.fromkeys(
            (
                "minigts kernel build coarse --hz 100",
                "minigts kernel build next --source 7.3.4-1~bpo13+1",
                "minigts kernel build mine --source ~/linux --patch fix.patch --config NET_SCH_CAKE=y",
                "minigts kernel build stable --source "
                "https://git.kernel.org/pub/scm/linux/kernel/git/stable/linux.git --commit v7.2.13",
                "minigts kernel build checked --debug lockdep,kmemleak",
                "minigts kernel build checked --debug kmemleak",
                *KMEMLEAK,
                "minigts kernel list",
                "minigts kernel remove mine",
                "minigts bisect ~/linux --good v7.2 --bad main --experiment tcp-timers --claim "
                '"Delayed acknowledgements"',
                "minigts bisect ~/linux --good v7.2 --bad main --experiment mine.yaml",
                "minigts bisect ~/linux --good v7.2 --bad main topologies/pair.yaml --seeds 20 -- ./check.sh",
                "for turn in 1 2 3; do",
                "  for kernel in standard coarse; do",
                "    time minigts run experiments/multihop.yaml --quick --time virtual --kernel $kernel",
                "  done",
                "done",
                "minigts validate tcp-timers --quick",
            ),
            f"compiles a kernel, or needs one: {OTHER_TEST}tests/live/test_kernels.py",
        ),
    ),
    "docs/gts.md": Plan(shown={"testbed.dsl": "type Ring {"}),
    "docs/vagrant.md": Plan(
        not_run=dict.fromkeys(
            (
                "./minigts setup vagrant",
                "./minigts up topologies/pair.yaml --provider vagrant",
                "./minigts check",
                "./minigts down",
            ),
            f"{OTHER_TEST}tests/live/test_vagrant.py or test_vagrantfile.py",
        ),
    ),
}
