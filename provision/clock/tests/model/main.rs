//! A reference model of a lab, run beside the real program on chance topologies, links and actions of clients, and compared
//! with it event by event: what comes to each host and when, by the host's own time, and what each link has counted.
//!
//! SCHEDULES says how many (else some dozens), SEED the first of them. A schedule that differs is named, with the first
//! event that does; SEED=that SCHEDULES=1 plays it again.

// Modules of the program that are compiled once more here are not used as a whole.
#![allow(dead_code)]

#[path = "../../src/changed.rs"]
mod changed;
mod guest;
#[path = "../hostile/kernel.rs"]
mod kernel;
mod reference;
mod script;
#[path = "../../src/trace.rs"]
mod trace;
#[path = "../../src/variation.rs"]
mod variation;
#[path = "../../src/waiting.rs"]
mod waiting;
#[path = "../../src/wire.rs"]
mod wire;

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use kernel::{ask, sleep, Client};
use reference::{Host, Lab, Processor};
use script::{Chance, Entry, Script, MS};
use wire::{Counts, Settings};

const ALL: u64 = 1 << 32;
const MOST_DATA: u64 = 1 << 30;
const PATIENCE: Duration = Duration::from_secs(60);

/// Of a host: what each port sends into, and (host, port) at the other end.
type Ports = Vec<(Settings, (usize, usize))>;

#[allow(clippy::large_enum_variant)] // there are few
enum Action {
    Pause(usize),
    Resume(usize),
    /// Its power goes off, and on again: it is another kernel then.
    Kill(usize),
    Start(usize),
    /// (host, port): what it sends into from now on.
    Set(usize, usize, Settings),
    /// What each wire has counted.
    Look,
}

#[derive(Clone, Copy)]
enum Does {
    Runs,
    Stands,
    IsOff,
}

/// While a kernel boots, time passes to the end of its first window without anybody having asked for it.
const BOOT: u64 = 15 * MS;

struct Schedule {
    seed: u64,
    ports: Vec<Ports>,
    processors: Vec<Option<Processor>>,
    actions: Vec<(u64, Action)>,
    end: u64,
}

fn settings(chance: &mut Chance) -> Settings {
    let share = |chance: &mut Chance, rarely: u64| {
        if chance.one_in(rarely) {
            ALL / chance.pick(&[2, 10, 100])
        } else {
            0
        }
    };
    let rate_bps = chance
        .one_in(2)
        .then(|| chance.pick(&[300_000, 5_000_000, 100_000_000, 1_000_000_007]));
    let delay_ns = chance.pick(&[0, 700, 250_000, MS, MS, 5 * MS, 5 * MS]);
    let bursts = chance.one_in(8);
    Settings {
        rate_bps,
        queue_bytes: rate_bps
            .filter(|_| !chance.one_in(3))
            .map(|_| chance.pick(&[1600, 6000, 100_000])),
        delay_ns,
        jitter_ns: if chance.one_in(3) {
            chance.below(2 * delay_ns + 1)
        } else {
            0
        },
        jitter_distribution: chance.pick(&[0, 0, 1, 2, 3, 4]),
        jitter_table: vec![-(1 << 16), 0, 1 << 15, 1 << 15],
        jitter_correlation: share(chance, 3),
        jitter_overtakes: chance.below(2),
        credit_bytes: chance.pick(&[0, 0, 3000, 60_000]),
        excess_drops: u64::from(chance.one_in(6)),
        peak_bps: rate_bps.filter(|_| chance.one_in(4)).map(|rate| 3 * rate),
        hole_bytes: chance.one_in(6).then_some(700),
        burst_spares: share(chance, 3),
        between_bursts: share(chance, 3),
        loss: share(chance, 4),
        seed: Some(chance.next() >> 1),
        burst_begins: if bursts { ALL / 20 } else { 0 },
        burst_ends: if bursts { ALL / 4 } else { 0 },
        reorder: share(chance, 6),
        duplicate: share(chance, 6),
        corrupt: share(chance, 6),
        slot_ns: if chance.one_in(6) { 3 * MS } else { 0 },
        queue_frames: chance.one_in(6).then(|| chance.pick(&[1, 5, 40])),
        ..Settings::default()
    }
}

impl Schedule {
    /// Hosts in a tree, and some more links between them.
    fn of(seed: u64) -> Schedule {
        let mut chance = Chance(seed);
        let count = 2 + chance.below(4) as usize;
        let mut links: Vec<(usize, usize)> = (1..count)
            .map(|host| (host, chance.below(host as u64) as usize))
            .collect();
        for _ in 0..chance.below(3) {
            let host = 1 + chance.below(count as u64 - 1) as usize;
            links.push((host, chance.below(host as u64) as usize));
        }
        let mut ports: Vec<Ports> = vec![Vec::new(); count];
        for (one, other) in links {
            let ends = ((one, ports[one].len()), (other, ports[other].len()));
            ports[one].push((settings(&mut chance), ends.1));
            ports[other].push((settings(&mut chance), ends.0));
        }
        let processors = (0..count).map(|_| {
            chance.one_in(4).then(|| Processor {
                frame_ns: chance.pick(&[1000, 200_000]),
                byte_ns: chance.pick(&[0.0, 1.5, 100.0]),
            })
        });
        let processors = processors.collect();
        let end = 400 * MS;
        let actions = actions(&mut chance, &ports, end);
        Schedule {
            seed,
            ports,
            processors,
            actions,
            end,
        }
    }

    fn order(&self, at_once: u64) -> Value {
        let (mut hosts, mut links, mut wires) = (Vec::new(), Vec::new(), Vec::new());
        for (host, ports) in self.ports.iter().enumerate() {
            let mac = |port: usize| format!("02:00:00:00:{host:02x}:{port:02x}");
            let macs: Vec<String> = (0..ports.len()).map(mac).collect();
            let processor = self.processors[host]
                .map(|one| json!({"frame_ns": one.frame_ns, "byte_ns": one.byte_ns}));
            hosts.push(json!({"name": format!("h{host}"), "ports": macs, "processor": processor}));
            for (port, (settings, peer)) in ports.iter().enumerate() {
                wires.push(json!({"host": host, "port": port, "wire": settings}));
                if (host, port) < *peer {
                    links.push(json!([[host, port], [peer.0, peer.1]]));
                }
            }
        }
        json!({"epoch_ns": 1_000_000_000_000_000_000u64, "at_once": at_once, "longest_turn_s": 600,
            "hosts": hosts, "links": links, "wires": wires})
    }

    fn script(&self, host: usize, from: u64) -> Script {
        Script::new(self.seed, host, self.ports[host].len(), from)
    }

    fn hosts(&self) -> std::ops::Range<usize> {
        0..self.ports.len()
    }
}

/// At moments that are sometimes those at which hosts act, too.
fn actions(chance: &mut Chance, ports: &[Ports], end: u64) -> Vec<(u64, Action)> {
    let mut moments: Vec<u64> = (0..chance.below(12))
        .map(|_| match chance.below(2) {
            0 => 20 * MS + chance.below(end - 21 * MS),
            _ => (20 + chance.below(end / MS - 21)) * MS,
        })
        .collect();
    moments.sort_unstable();
    let mut does = vec![Does::Runs; ports.len()];
    let (mut actions, mut earliest) = (Vec::new(), 0);
    for moment in moments.into_iter().filter(|moment| *moment < end - BOOT) {
        if moment < earliest {
            continue;
        }
        let host = chance.below(ports.len() as u64) as usize;
        let (then, action) = match (chance.below(5), does[host]) {
            (0, does) => (does, Action::Look),
            (1, does) => {
                let port = chance.below(ports[host].len() as u64) as usize;
                (does, Action::Set(host, port, settings(chance)))
            }
            (2, Does::Runs | Does::Stands) => (Does::IsOff, Action::Kill(host)),
            (_, Does::Runs) => (Does::Stands, Action::Pause(host)),
            (_, Does::Stands) => (Does::Runs, Action::Resume(host)),
            (_, Does::IsOff) => (Does::Runs, Action::Start(host)),
        };
        if matches!(action, Action::Start(_)) {
            earliest = moment + BOOT;
        }
        does[host] = then;
        actions.push((moment, action));
    }
    actions
}

/// What was seen: each host's log, and the wires' counts whenever somebody looked.
#[derive(PartialEq, Eq)]
struct Seen {
    logs: Vec<Vec<Entry>>,
    wires: Vec<Vec<(Counts, u64)>>,
}

fn by_the_model(schedule: &Schedule) -> Seen {
    let new =
        |host: usize, from: u64| Host::new(schedule.script(host, from), schedule.processors[host]);
    let hosts = schedule.hosts().map(|host| new(host, 0));
    let mut lab = Lab::new(hosts.collect(), &schedule.ports);
    let mut wires = Vec::new();
    for (now, action) in &schedule.actions {
        lab.run_until(*now);
        match action {
            Action::Pause(host) => lab.pause(*host, *now),
            Action::Resume(host) => lab.resume(*host, *now),
            Action::Kill(host) => lab.kill(*host),
            Action::Start(host) => lab.start(*host, new(*host, *now)),
            Action::Set(host, port, settings) => lab.set(*host, *port, *now, settings.clone()),
            Action::Look => wires.push(lab.wires(*now)),
        }
    }
    lab.run_until(schedule.end);
    wires.push(lab.wires(schedule.end));
    Seen {
        logs: lab.into_logs(),
        wires,
    }
}

/// Until the clock says so of a host: it hears of a kernel that ends, or starts, when it comes to that.
fn until(client: &mut Client, host: usize, state: &str) {
    let began = Instant::now();
    while ask(client, json!({"op": "hosts"}))["hosts"][host]["state"] != state {
        assert!(began.elapsed() < PATIENCE, "host {host} is never {state}");
        thread::sleep(Duration::from_micros(200));
    }
}

fn wires(client: &mut Client) -> Vec<(Counts, u64)> {
    let answer = ask(client, json!({"op": "wires"}));
    let of = |wire: &Value| {
        let number = |name: &str| wire[name].as_u64().expect("a number");
        let counts = Counts {
            frames: number("frames"),
            bytes: number("bytes"),
            dropped: number("dropped"),
            overrun: number("overrun"),
            lost: number("lost"),
        };
        (counts, number("queued"))
    };
    let wires = answer["wires"].as_array().expect("an array");
    wires.iter().map(of).collect()
}

fn by_the_clock(schedule: &Schedule, at_once: u64) -> Seen {
    let program = env::var("CLOCK").unwrap_or_else(|_| env!("CARGO_BIN_EXE_clock").into());
    let name = format!("model-{}-{}-{at_once}", std::process::id(), schedule.seed);
    let directory = env::temp_dir().join(name);
    let order = schedule.order(at_once);
    let clock = kernel::start(&program, &order, directory.clone(), MOST_DATA);
    let new = |host: usize, from: u64| {
        let ports = schedule.ports[host].len();
        guest::start(&clock, host, ports, schedule.script(host, from))
    };
    let mut guests: Vec<_> = schedule.hosts().map(|host| Some(new(host, 0))).collect();
    let mut logs: Vec<Vec<Entry>> = schedule.hosts().map(|_| Vec::new()).collect();
    let (mut client, mut seen) = (clock.client(), Vec::new());
    for host in schedule.hosts() {
        until(&mut client, host, "waiting");
    }
    for (now, action) in &schedule.actions {
        sleep(&mut client, *now);
        match action {
            Action::Pause(host) => {
                drop(ask(&mut client, json!({"op": "pause_host", "host": host})))
            }
            Action::Resume(host) => {
                drop(ask(&mut client, json!({"op": "resume_host", "host": host})))
            }
            Action::Kill(host) => {
                logs[*host].extend(guests[*host].take().expect("it is up").end());
                until(&mut client, *host, "absent");
            }
            Action::Start(host) => {
                guests[*host] = Some(new(*host, *now));
                until(&mut client, *host, "waiting");
            }
            Action::Set(host, port, settings) => {
                let wire = json!({"host": host, "port": port, "wire": settings});
                ask(&mut client, json!({"op": "set", "wires": [wire]}));
            }
            Action::Look => seen.push(wires(&mut client)),
        }
    }
    sleep(&mut client, schedule.end);
    seen.push(wires(&mut client));
    for (host, guest) in guests.into_iter().enumerate() {
        logs[host].extend(guest.map(guest::Started::end).unwrap_or_default());
    }
    clock.end();
    let said = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    assert_eq!(said, "", "the clock has something to say");
    let _ = std::fs::remove_dir_all(directory);
    Seen { logs, wires: seen }
}

/// The first event that the two do not have in common.
fn difference(model: &Seen, clock: &Seen) -> Option<String> {
    for (host, (of_model, of_clock)) in model.logs.iter().zip(&clock.logs).enumerate() {
        let longer = of_model.len().max(of_clock.len());
        let at = (0..longer).find(|at| of_model.get(*at) != of_clock.get(*at));
        if let Some(at) = at {
            let (one, other) = (shown(of_model.get(at)), shown(of_clock.get(at)));
            return Some(format!(
                "event {at} of host {host} is {one}, and was {other}"
            ));
        }
    }
    let at = (0..model.wires.len()).find(|at| model.wires[*at] != clock.wires[*at])?;
    let (one, other) = (&model.wires[at], &clock.wires[at]);
    Some(format!(
        "look {at} at the wires: {one:?}, and was {other:?}"
    ))
}

fn shown(entry: Option<&Entry>) -> String {
    match entry {
        None => "none".into(),
        Some(Entry { at, frame: None }) => format!("a timer at {at}"),
        Some(Entry {
            at,
            frame: Some((port, frame)),
        }) => {
            let head: Vec<u8> = frame.iter().skip(12).take(12).copied().collect();
            format!("{} bytes {head:?} by port {port} at {at}", frame.len())
        }
    }
}

fn given(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().map_or(otherwise, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number"))
    })
}

/// However many kernels run side by side.
#[test]
fn the_clock_does_what_the_model_does() {
    let first = given("SEED", 1);
    let (mut events, mut looks, mut differ) = (0, 0, Vec::new());
    for seed in first..first + given("SCHEDULES", 20) {
        let schedule = Schedule::of(seed);
        let model = by_the_model(&schedule);
        for at_once in [1, 4] {
            let clock = by_the_clock(&schedule, at_once);
            if let Some(how) = difference(&model, &clock) {
                differ.push(format!("seed {seed}, {at_once} at once: {how}"));
            }
        }
        events += model.logs.iter().map(Vec::len).sum::<usize>();
        looks += model.wires.len();
    }
    println!("{events} events, {looks} looks at all wires");
    assert_eq!(differ, Vec::<String>::new());
    assert!(events > 1000, "hosts have something to do");
}
