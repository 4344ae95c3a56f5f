//! The real scheduler, with its hosts, links and page, under every order in which the clock may serve messages of kernels
//! that run side by side. Three kernels are on a line, of which the middle one forwards; what comes to each, and when, has to
//! be the same in every order, whatever the kernels' habits and however many run at the same time.
//!
//! Orders are tried window by window: all orders of one window's messages, with the first order in the others. What the lab is
//! at the end of that window has to be the same after each, so all orders of all windows come to the same.

// Modules of the program that are compiled once more here are not used as a whole.
#![allow(dead_code)]

#[path = "../../src/calendar.rs"]
mod calendar;
#[path = "../../src/changed.rs"]
mod changed;
#[path = "../../src/course.rs"]
mod course;
#[path = "../../src/delivery.rs"]
mod delivery;
#[path = "../../src/device.rs"]
mod device;
#[path = "../../src/frames.rs"]
mod frames;
#[path = "../../src/gate.rs"]
mod gate;
mod guest;
#[path = "../../src/host.rs"]
mod host;
#[path = "../hostile/kernel.rs"]
mod kernel;
#[path = "../../src/links.rs"]
mod links;
#[path = "../../src/orders.rs"]
mod orders;
#[path = "../../src/page.rs"]
mod page;
#[path = "../../src/rings.rs"]
mod rings;
#[path = "../../src/scheduler.rs"]
mod scheduler;
#[path = "../../src/socket.rs"]
mod socket;
#[path = "../../src/storm.rs"]
mod storm;
#[path = "../../src/taken_away.rs"]
mod taken_away;
#[path = "../../src/trace.rs"]
mod trace;
#[path = "../../src/traffic.rs"]
mod traffic;
#[path = "../../src/trunk.rs"]
mod trunk;
#[path = "../../src/turn.rs"]
mod turn;
#[path = "../../src/under_way.rs"]
mod under_way;
#[path = "../../src/variation.rs"]
mod variation;
#[path = "../../src/waiting.rs"]
mod waiting;
#[path = "../../src/wire.rs"]
mod wire;

use guest::{Guest, Habits, Log, Notes, Sent};
use orders::{HostSpec, PortSettings, Processor, Topology};
use scheduler::{Progress, Scheduler};
use traffic::Heard;
use wire::Settings;

const MS: u64 = 1_000_000;
const DELAY_NS: u64 = MS;
const END: u64 = 10 * MS;
const MIDDLE: usize = 1;
const PORTS: [usize; 3] = [1, 2, 1];
/// Which choices are free, when they are.
const NO_WINDOW: usize = usize::MAX;

/// Which of several things is done next: in one window everything in turn, from one run to the next, and else the first.
#[derive(Default)]
struct Choices {
    /// (what was chosen, of how many).
    made: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn choose(&mut self, of: usize) -> usize {
        if self.at == self.made.len() {
            self.made.push((0, of));
        }
        let (chosen, before) = self.made[self.at];
        assert_eq!(before, of, "the same choices lead to the same");
        self.at += 1;
        chosen
    }

    /// Whether there are other choices than those made so far.
    fn next(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, of)) = self.made.pop() {
            if chosen + 1 < of {
                self.made.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    habits: [Habits; 3],
    at_once: usize,
    /// Whether the middle host has a modelled processor, so that the order in which frames come decides when.
    processor: bool,
}

struct Lab {
    scheduler: Scheduler,
    guests: Vec<Guest>,
}

fn topology(processor: bool) -> Topology {
    let hosts = PORTS.iter().enumerate().map(|(host, ports)| HostSpec {
        name: format!("h{host}"),
        ports: (0..*ports)
            .map(|port| format!("02:00:00:00:0{host}:0{port}"))
            .collect(),
        processor: (processor && host == MIDDLE).then_some(Processor {
            frame_ns: 1000,
            byte_ns: 0.0,
        }),
        trunk: false,
        within: None,
    });
    let ends = [(0, 0), (1, 0), (1, 1), (2, 0)];
    Topology {
        hosts: hosts.collect(),
        links: vec![[ends[0], ends[1]], [ends[2], ends[3]]],
        wires: ends
            .iter()
            .map(|(host, port)| PortSettings {
                host: *host,
                port: *port,
                wire: Settings {
                    delay_ns: DELAY_NS,
                    ..Settings::default()
                },
            })
            .collect(),
    }
}

/// When the outer hosts send by themselves, and what.
fn timers(host: usize) -> &'static [(u64, u8)] {
    match host {
        0 => &[(3 * MS, b'a'), (3 * MS + MS / 2, b'b')],
        MIDDLE => &[],
        _ => &[(3 * MS, b'c'), (3 * MS + MS / 2, b'd')],
    }
}

impl Lab {
    /// Its kernels have come up, and their first window is over.
    fn new(case: Case) -> Lab {
        let mut scheduler = Scheduler::new(0, case.at_once, topology(case.processor)).unwrap();
        let mut guests = Vec::new();
        for (index, ports) in PORTS.into_iter().enumerate() {
            let kernel = guest::start(&mut scheduler, index, ports);
            let habits = case.habits[index];
            let forwards = index == MIDDLE;
            guests.push(Guest::new(index, kernel, habits, timers(index), forwards));
        }
        guest::boot_all(&mut scheduler, &mut guests);
        Lab { scheduler, guests }
    }

    /// To the end of the lab, with free choices in that window: what there was at its end.
    fn run(&mut self, case: Case, window: usize, choices: &mut Choices) -> Vec<String> {
        let mut states = Vec::new();
        let mut sent: Vec<Option<Sent>> = vec![None; self.guests.len()];
        loop {
            assert!(!self.scheduler.somebody_has_a_turn());
            self.nobody_is_forgotten();
            self.scheduler.close_window();
            states.push(self.state());
            if self.scheduler.now >= END {
                return states;
            }
            let before = self.scheduler.now;
            assert_eq!(self.scheduler.advance(Some(END)), Progress::Passed);
            assert!(self.scheduler.now >= before, "time goes on");
            while self.scheduler.somebody_has_a_turn() {
                self.kernels_act(case, &mut sent);
                let pending = (0..sent.len()).filter(|index| sent[*index].is_some());
                let pending: Vec<usize> = pending.collect();
                assert!(!pending.is_empty(), "who has a turn has something to say");
                let is_free = window == states.len() && pending.len() > 1;
                let chosen = if is_free {
                    choices.choose(pending.len())
                } else {
                    0
                };
                let index = pending[chosen];
                match sent[index].take().expect("it is pending") {
                    Sent::Calendar => self.scheduler.hear_calendar(index),
                    Sent::Device(device) => {
                        let heard = self.scheduler.hear_device(index, device);
                        assert_eq!(heard, Heard::Nothing);
                        self.guests[index].answered(device);
                        sent[index] = Some(self.guests[index].act());
                    }
                }
                assert!(self.scheduler.ended.is_empty(), "nobody lies");
            }
        }
    }

    /// Each that has been given a turn acts until it has sent something.
    fn kernels_act(&mut self, case: Case, sent: &mut [Option<Sent>]) {
        let mut busy = 0;
        for (index, sent) in sent.iter_mut().enumerate() {
            let host = self.scheduler.hosts[index].as_ref().unwrap();
            busy += usize::from(host.is_busy());
            if self.guests[index].begins_a_turn() {
                let end = self.scheduler.window.expect("a turn is in a window");
                assert!(self.guests[index].free_until() <= end, "and ends with it");
                *sent = Some(self.guests[index].act());
            }
        }
        assert!(busy <= case.at_once, "no more than may");
    }

    /// A window is over when nobody has anything left to do in it.
    fn nobody_is_forgotten(&self) {
        let Some(end) = self.scheduler.window else {
            return;
        };
        for host in self.scheduler.hosts.iter().flatten() {
            assert!(host.next().is_none_or(|next| next >= end), "in its window");
        }
    }

    /// All that another order of messages could have changed.
    fn state(&self) -> String {
        let hosts = self.scheduler.hosts.iter().flatten();
        let next: Vec<_> = hosts
            .map(|host| (host.next(), host.arrivals.len()))
            .collect();
        let logs: Vec<&Log> = self.guests.iter().map(|guest| &guest.log).collect();
        let wires = self.scheduler.links.states(self.scheduler.now);
        let counts: Vec<_> = wires.iter().map(|wire| wire.counts).collect();
        let now = self.scheduler.now;
        let course = self.scheduler.course_state().fingerprint;
        format!("{now} {next:?} {logs:?} {counts:?} {course}")
    }
}

/// What comes to whom, by the delays alone.
fn expected(processor: bool) -> Vec<Log> {
    let half = MS / 2;
    // The middle host's processor takes a microsecond for each frame that comes, and for each that leaves.
    let (first, second) = if processor { (1000, 2000) } else { (0, 0) };
    let comes = [4 * MS, 4 * MS + half];
    let middle = vec![
        (comes[0] + first, 0, b'a'),
        (comes[0] + second, 1, b'c'),
        (comes[1] + first, 0, b'b'),
        (comes[1] + second, 1, b'd'),
    ];
    // It has taken in both when it begins with the first.
    let (one, other) = if processor { (3000, 4000) } else { (0, 0) };
    vec![
        vec![
            (comes[0] + MS + other, 0, b'c'),
            (comes[1] + MS + other, 0, b'd'),
        ],
        middle,
        vec![
            (comes[0] + MS + one, 0, b'a'),
            (comes[1] + MS + one, 0, b'b'),
        ],
    ]
}

/// How many orders there were, and what there was at the end of each window.
fn try_all(case: Case) -> (usize, Vec<String>) {
    let mut lab = Lab::new(case);
    let first = lab.run(case, NO_WINDOW, &mut Choices::default());
    let logs: Vec<Log> = lab.guests.into_iter().map(|guest| guest.log).collect();
    assert_eq!(logs, expected(case.processor), "{case:?}");
    let mut orders = 1;
    for window in 1..first.len() {
        let mut choices = Choices::default();
        loop {
            let states = Lab::new(case).run(case, window, &mut choices);
            let made = &choices.made;
            assert!(
                states == first,
                "{case:?}, window {window}: {made:?}\n{states:#?}\n{first:#?}"
            );
            orders += 1;
            if !choices.next() {
                break;
            }
        }
    }
    (orders, first)
}

/// The outer hosts have the same habits.
fn cases() -> impl Iterator<Item = Case> {
    let notes = [
        [Notes::None; 2],
        [Notes::All; 2],
        [Notes::EveryOther, Notes::None],
        [Notes::None, Notes::EveryOther],
    ];
    notes.into_iter().flat_map(|[outer, middle]| {
        (0..3).flat_map(move |bits| {
            let habits = [outer, middle, outer].map(|notes| Habits {
                notes,
                ends_early: bits & 1 == 1,
            });
            [1, 2, 3].map(|at_once| Case {
                habits,
                at_once,
                processor: bits & 2 == 2,
            })
        })
    })
}

#[test]
fn every_order_of_messages_comes_to_the_same() {
    let began = std::time::Instant::now();
    let (mut tried, mut orders) = (0, 0);
    let mut before: Option<(Case, Vec<String>)> = None;
    for case in cases() {
        tried += 1;
        let (more, states) = try_all(case);
        orders += more;
        // Of cases that differ in how many run at the same time, the course is one, too.
        let alike = |other: &Case| {
            format!("{:?}", other.habits) == format!("{:?}", case.habits)
                && other.processor == case.processor
        };
        if let Some((_, others)) = before.filter(|(other, _)| alike(other)) {
            assert!(states == others, "{case:?}");
        }
        before = Some((case, states));
    }
    println!("{orders} orders of {tried} cases in {:?}", began.elapsed());
    assert!(orders > 500);
}
