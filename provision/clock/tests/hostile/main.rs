//! A kernel that says anything at all, in great numbers, to the real program through its real sockets: the clock goes on for
//! the other kernels, its time never goes back, and it takes no more memory than it may.
//!
//! What is sent is right but for a part that chance picks: messages, the page, queues and frames in memory, descriptors.
//! So much of it as the environment says: LIES (how many, else a few), STARTS (starts.rs), SEED, and CLOCK, a program to try
//! instead of the crate's own. The last line that is printed says what came of it.

// Other tests use more of kernel.rs.
#![allow(dead_code)]

mod kernel;
mod starts;

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kernel::{
    read_with, start, vhost, write, write_with, Card, Clock, Kernel, Read, Shared, AVAILABLE,
    BUFFERS, HELLO, NOTES, OWN, PAGE, QUEUE, USED,
};
use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use serde_json::{json, Value};

const LIAR: usize = 2;
const LIAR_PORTS: usize = 2;
const MEMORY: usize = 1 << 20;
/// One in so many parts of what is sent is not as it should be.
const RARE: usize = 300;
const STEP_NS: u64 = 1_000_000;
/// Within what everybody else is served, whatever a liar does, on a machine that runs other tests.
const LONGEST: Duration = Duration::from_secs(5);
const MB: u64 = 1_000_000;

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Numbers that are at the edge of something, and others.
    fn number(&mut self) -> u64 {
        let near = self.pick(&[
            0,
            1,
            2,
            12,
            14,
            255,
            256,
            4096,
            65_535,
            65_570,
            1 << 20,
            1 << 31,
            1 << 32,
            1 << 62,
            1 << 63,
            0,
        ]);
        match self.below(4) {
            0 => near,
            1 => near.wrapping_sub(self.below(4) as u64),
            2 => near.wrapping_add(self.below(4) as u64),
            _ => self.next() >> self.below(64),
        }
    }
}

/// What is counted, and the worst that was seen.
#[derive(Default)]
struct Outcome {
    messages: u64,
    pages: u64,
    liars: u64,
    ended: u64,
    slowest: Duration,
    largest: u64,
}

/// Kernels and a client beside the liar, and what they have seen.
struct Others {
    turns: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

fn wire(rate_bps: Option<u64>) -> Value {
    json!({"rate_bps": rate_bps, "queue_bytes": rate_bps.map(|_| 100_000), "delay_ns": 5_000_000, "jitter_ns": 100_000,
        "loss": 1 << 28, "seed": 1, "burst_begins": 0, "burst_ends": 0, "reorder": 1 << 24, "duplicate": 1 << 28,
        "corrupt": 1 << 28, "slot_ns": 0})
}

fn lab(rate_bps: Option<u64>) -> Value {
    let host =
        |name: &str, ports: &[&str]| json!({"name": name, "ports": ports, "processor": null});
    let processor = json!({"frame_ns": 1000, "byte_ns": 1.0});
    let mut second = host("second", &["02:00:00:00:00:01"]);
    second["processor"] = processor;
    let ends = [(0, 0), (1, 0), (LIAR, 0), (LIAR, 1)];
    let wires: Vec<Value> = ends
        .iter()
        .map(|(host, port)| json!({"host": host, "port": port, "wire": wire(rate_bps)}))
        .collect();
    json!({"epoch_ns": 1_000_000_000_000_000_000u64, "at_once": 2, "longest_turn_s": 600,
        "hosts": [host("first", &["02:00:00:00:00:00"]), second, host("liar", &["02:00:00:00:00:02", "02:00:00:00:00:03"])],
        "links": [[[LIAR, 0], [0, 0]], [[LIAR, 1], [1, 0]]], "wires": wires})
}

/// Kernels that ask for their next moment again and again, and look whether time goes on.
fn honest(clock: &Clock, host: usize, turns: Arc<AtomicU64>) -> JoinHandle<Result<(), String>> {
    let mut kernel = Kernel::new(clock, host, 1);
    thread::spawn(move || {
        if !kernel.start() {
            return Err("an honest kernel got no page".into());
        }
        let (console, port) = (Card::new(&kernel, 0), Card::new(&kernel, 1));
        console.say(&kernel, HELLO);
        let mut now = kernel.time();
        loop {
            if !kernel.wait(Some(now + STEP_NS)) {
                return Ok(());
            }
            let mut bytes = [0; 16];
            if read_with(&kernel.calendar, &mut bytes, MsgFlags::empty()).0 != Read::Bytes(16) {
                return Ok(());
            }
            let then = std::mem::replace(&mut now, kernel.time());
            if now < then {
                return Err(format!("the time of host {host} went from {then} to {now}"));
            }
            port.give_back();
            console.give_back();
            turns.fetch_add(1, Ordering::Relaxed);
        }
    })
}

fn company(clock: &Clock) -> Others {
    let (turns, over) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let mut threads: Vec<_> = (0..LIAR)
        .map(|host| honest(clock, host, turns.clone()))
        .collect();
    let (mut sleeper, mut asking) = (clock.client(), clock.client());
    threads.push(thread::spawn(move || {
        let mut now = 0;
        while let Some(answer) =
            sleeper.ask(json!({"op": "sleep", "until_ns": now + 10 * STEP_NS, "turn": 0}))
        {
            let then = std::mem::replace(&mut now, answer["now_ns"].as_u64().ok_or("no time")?);
            if now <= then {
                return Err(format!("the lab's time went from {then} to {now}"));
            }
        }
        Ok(())
    }));
    let done = over.clone();
    threads.push(thread::spawn(move || {
        while !done.load(Ordering::Relaxed) {
            let asked = Instant::now();
            if asking.ask(json!({"op": "hosts"})).is_none() {
                return Ok(());
            }
            if asked.elapsed() > LONGEST {
                return Err(format!("the clock took {:?} to answer", asked.elapsed()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }));
    Others {
        turns,
        over,
        threads,
    }
}

/// Until there is something to be read, or so many milliseconds have passed.
fn await_one(fd: &OwnedFd, patience_ms: i32) {
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one descriptor that is open.
    unsafe { libc::poll(&mut poll, 1, patience_ms) };
}

struct Liar<'a> {
    kernel: Kernel,
    /// Each device's.
    memories: Vec<Shared>,
    chance: &'a mut Chance,
    outcome: &'a mut Outcome,
    /// Other descriptors to send in place of memory.
    strange: &'a [OwnedFd],
    gone: bool,
}

impl Liar<'_> {
    /// Send it; what has been answered is thrown away, or not read at all.
    fn send(&mut self, to: usize, bytes: &[u8], files: &[i32]) {
        self.outcome.messages += 1;
        let fd = if to == 0 {
            &self.kernel.calendar
        } else {
            &self.kernel.devices[to - 1]
        };
        let sent = if files.is_empty() {
            write(fd, bytes)
        } else {
            write_with(fd, bytes, files, MsgFlags::MSG_DONTWAIT)
        };
        match sent {
            Ok(_) => {}
            // Not read yet: nothing is wrong, and the clock has work.
            Err(Errno::EAGAIN) => thread::sleep(Duration::from_micros(200)),
            Err(_) => self.gone = true,
        }
        if !self.chance.one_in(16) {
            self.drain();
        }
    }

    /// Wait until the clock has read all that it was told, as a kernel does before it ends its turn: but not always.
    fn settle(&mut self) {
        if self.chance.one_in(RARE) {
            return;
        }
        let began = Instant::now();
        while !self.gone
            && began.elapsed() < LONGEST
            && self.kernel.devices.iter().any(kernel::has_unread)
        {
            self.drain();
            thread::sleep(Duration::from_micros(50));
        }
        self.drain();
    }

    fn drain(&mut self) {
        let mut bytes = [0; 4096];
        let Kernel {
            calendar,
            devices,
            line,
            ..
        } = &self.kernel;
        for fd in devices.iter().chain([calendar, line]) {
            loop {
                match read_with(fd, &mut bytes, MsgFlags::MSG_DONTWAIT).0 {
                    Read::Nothing => break,
                    Read::Gone => {
                        self.gone = true;
                        break;
                    }
                    Read::Bytes(_) => {}
                }
            }
        }
    }

    /// The bytes, of which chance has changed some, taken some away or put some in.
    fn mutated(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..1 + self.chance.below(3) {
            match self.chance.below(6) {
                0 if !bytes.is_empty() => bytes.truncate(self.chance.below(bytes.len())),
                1 => bytes.extend(std::iter::repeat_n(0xff, self.chance.below(64))),
                2 | 3 if bytes.len() >= 4 => {
                    let at = self.chance.below(bytes.len() / 4) * 4;
                    bytes[at..at + 4].copy_from_slice(&(self.chance.number() as u32).to_ne_bytes());
                }
                4 if bytes.len() >= 8 => {
                    let at = self.chance.below(bytes.len() / 8) * 8;
                    bytes[at..at + 8].copy_from_slice(&self.chance.number().to_ne_bytes());
                }
                _ if !bytes.is_empty() => {
                    let at = self.chance.below(bytes.len());
                    bytes[at] ^= 1 << self.chance.below(8);
                }
                _ => {}
            }
        }
        bytes
    }

    fn setting(&mut self) {
        let device = 1 + self.chance.below(1 + LIAR_PORTS);
        for (request, payload) in Kernel::setup(MEMORY as u64, false) {
            let message = vhost(request, &payload);
            let message = if self.chance.one_in(150) {
                self.mutated(message)
            } else {
                message
            };
            let own = self.memories[device - 1].file.as_raw_fd();
            let file = if self.chance.one_in(150) {
                self.chance.pick(self.numbers().as_slice())
            } else {
                own
            };
            let files = if request == 5 {
                vec![
                    file;
                    if self.chance.one_in(150) {
                        self.chance.below(9)
                    } else {
                        1
                    }
                ]
            } else {
                vec![]
            };
            self.send(device, &message, &files);
            if self.gone {
                return;
            }
        }
    }

    fn numbers(&self) -> Vec<i32> {
        self.strange.iter().map(AsRawFd::as_raw_fd).collect()
    }

    /// Write something into queues and what they lead to; then tell of it, or note it.
    fn output(&mut self) {
        self.outcome.pages += 1;
        let device = if self.chance.one_in(RARE) {
            1
        } else {
            2 + self.chance.below(LIAR_PORTS)
        };
        let memory = &self.memories[device - 1];
        let queue = if self.chance.one_in(4) { 0 } else { QUEUE };
        let parts = 1 + self.chance.below(4);
        for part in 0..parts {
            let length = if self.chance.one_in(200) {
                self.chance.number() as u32
            } else {
                26 + self.chance.below(1500) as u32
            };
            let address = if self.chance.one_in(RARE) {
                self.chance.number()
            } else {
                (BUFFERS + self.chance.below(1 << 16)) as u64
            };
            let last = part == parts - 1 && !self.chance.one_in(RARE);
            let flags = if last { 0 } else { 1u16 }
                | if self.chance.one_in(RARE) {
                    self.chance.number() as u16
                } else {
                    0
                };
            let next = if self.chance.one_in(RARE) {
                self.chance.number() as u16
            } else {
                part as u16 + 1
            };
            let descriptor = [
                &address.to_le_bytes()[..],
                &length.to_le_bytes(),
                &flags.to_le_bytes(),
                &next.to_le_bytes(),
            ]
            .concat();
            memory.put(queue + 16 * part, &descriptor);
        }
        let used = u16::from_le_bytes(memory.get(queue + USED + 2));
        let ahead = if self.chance.one_in(RARE) {
            self.chance.number() as u16
        } else {
            1 + self.chance.below(8) as u16
        };
        memory.put(
            queue + AVAILABLE + 2,
            &used.wrapping_add(ahead).to_le_bytes(),
        );
        if self.chance.one_in(RARE) {
            let at = self.chance.below(MEMORY - 8);
            memory.put(at, &self.chance.number().to_le_bytes());
        }
        if self.chance.one_in(4 * RARE) {
            memory.shorten(self.chance.below(MEMORY) as u64);
        }
        if device > 1 && self.chance.one_in(2) {
            self.note(device - 1, used.wrapping_add(ahead));
        } else {
            let kick = vhost(
                35,
                &[u32::from(queue != 0), 0].map(u32::to_ne_bytes).concat(),
            );
            let kick = if self.chance.one_in(RARE) {
                self.mutated(kick)
            } else {
                kick
            };
            self.send(device, &kick, &[]);
        }
    }

    fn note(&mut self, device: usize, index: u16) {
        let now = self.kernel.time();
        let count = if self.chance.one_in(RARE) {
            self.chance.number() as u32
        } else {
            1
        };
        let time = if self.chance.one_in(RARE) {
            self.chance.number()
        } else {
            now
        };
        let device = if self.chance.one_in(RARE) {
            self.chance.number() as u32
        } else {
            device as u32
        };
        let page = self.kernel.page();
        page.put(NOTES + 24, &time.to_ne_bytes());
        page.put(NOTES + 32, &device.to_ne_bytes());
        page.put(NOTES + 36, &u32::from(index).to_ne_bytes());
        page.put(NOTES + 8, &count.to_ne_bytes());
    }

    /// Say something on the console, with frames of an agent that may be anything.
    fn say(&mut self) {
        let head = [
            &1u32.to_be_bytes()[..],
            &[self.chance.below(12) as u8],
            &5u32.to_be_bytes(),
        ]
        .concat();
        let head = if self.chance.one_in(RARE) {
            self.mutated(head)
        } else {
            head
        };
        let text = [&head[..], b"12345"].concat();
        self.memories[0].put(BUFFERS, &text);
        self.memories[0].put(
            QUEUE,
            &[BUFFERS as u64, text.len() as u64]
                .map(u64::to_le_bytes)
                .concat(),
        );
        let used = u16::from_le_bytes(self.memories[0].get(QUEUE + USED + 2));
        self.memories[0].put(QUEUE + AVAILABLE + 2, &used.wrapping_add(1).to_le_bytes());
        self.send(
            1,
            &vhost(35, &[1u32, 0].map(u32::to_ne_bytes).concat()),
            &[],
        );
    }

    fn page_is_changed(&mut self) {
        self.outcome.pages += 1;
        let fields = [
            8,
            16,
            24,
            26,
            OWN,
            OWN + 4,
            OWN + 8,
            NOTES,
            NOTES + 8,
            NOTES + 12,
            NOTES + 16,
        ];
        let at = if self.chance.one_in(2) {
            self.chance.pick(&fields)
        } else {
            self.chance.below(PAGE - 8)
        };
        let number = self.chance.number();
        self.kernel.page().put(at, &number.to_ne_bytes());
    }

    /// End its turn with a request that is right, or not, and wait for the next one for a moment.
    fn turn(&mut self) {
        self.settle();
        let now = self.kernel.time();
        let ahead = self.chance.below(3 * STEP_NS as usize) as u64;
        let request = if self.chance.one_in(200) {
            self.chance.number()
        } else {
            now.saturating_add(ahead)
        };
        self.outcome.messages += 1;
        let asks = !self.chance.one_in(5 * RARE);
        if !self.kernel.wait(asks.then_some(request)) {
            self.gone = true;
        }
        // As a kernel does. One that does not wait for its turn is the next step of some other time.
        let mut bytes = [0; 16];
        let patience = if self.chance.one_in(200) {
            0
        } else if asks {
            1000
        } else {
            20
        };
        await_one(&self.kernel.calendar, patience);
        if read_with(&self.kernel.calendar, &mut bytes, MsgFlags::MSG_DONTWAIT).0 == Read::Gone {
            self.gone = true;
        }
    }

    fn calendar(&mut self) {
        let op = if self.chance.one_in(20) {
            self.chance.below(11) as u32
        } else {
            self.chance.pick(&[0, 6, 7, 8, 9])
        };
        let message = [op.to_ne_bytes(), 7u32.to_ne_bytes(), [0; 4], [0; 4]].concat();
        let message = if self.chance.one_in(20) {
            self.mutated(message)
        } else {
            message
        };
        self.send(0, &message, &[]);
    }

    fn other_message(&mut self) {
        let request = self
            .chance
            .pick(&[1, 2, 3, 11, 15, 17, 21, 24, 35, 36, 40, 4000]);
        let request = if self.chance.one_in(RARE) {
            self.chance.pick(&[5, 8, 9, 10, 16, 18])
        } else {
            request
        };
        let queue = if self.chance.one_in(200) {
            self.chance.number() as u32
        } else {
            self.chance.below(2) as u32
        };
        let others = (0..11).flat_map(|_| (self.chance.number() as u32).to_ne_bytes());
        let payload: Vec<u8> = queue.to_ne_bytes().into_iter().chain(others).collect();
        let message = vhost(request, &payload);
        let message = if self.chance.one_in(60) {
            self.mutated(message)
        } else {
            message
        };
        let files = if self.chance.one_in(8) {
            self.numbers()
        } else {
            vec![]
        };
        let device = 1 + self.chance.below(1 + LIAR_PORTS);
        self.send(device, &message, &files);
    }

    fn live(&mut self) {
        if !self.kernel.start() {
            return;
        }
        for device in 1..=1 + LIAR_PORTS {
            for (request, payload) in Kernel::setup(MEMORY as u64, false) {
                let own = [self.memories[device - 1].file.as_raw_fd()];
                let files = if request == 5 { &own[..] } else { &[] };
                let _ = write_with(
                    &self.kernel.devices[device - 1],
                    &vhost(request, &payload),
                    files,
                    MsgFlags::MSG_DONTWAIT,
                );
            }
        }
        self.greet();
        while !self.gone && !self.chance.one_in(4000) {
            match self.chance.below(100) {
                0..30 => self.output(),
                30..34 => self.turn(),
                34..44 => self.say(),
                44 if self.chance.one_in(4) => self.page_is_changed(),
                45 => self.calendar(),
                46 if self.chance.one_in(4) => self.setting(),
                _ => self.other_message(),
            }
        }
    }

    fn greet(&mut self) {
        self.memories[0].put(BUFFERS, HELLO);
        self.memories[0].put(
            QUEUE,
            &[BUFFERS as u64, HELLO.len() as u64]
                .map(u64::to_le_bytes)
                .concat(),
        );
        let used = u16::from_le_bytes(self.memories[0].get(QUEUE + USED + 2));
        self.memories[0].put(QUEUE + AVAILABLE + 2, &used.wrapping_add(1).to_le_bytes());
        for (memory, queue) in self
            .memories
            .iter()
            .flat_map(|memory| [(memory, 0), (memory, QUEUE)])
        {
            for index in 0..4 {
                let descriptor = [BUFFERS as u64, 100].map(u64::to_le_bytes).concat();
                memory.put(queue + 16 * index, &descriptor);
            }
            for index in 0..256u16 {
                memory.put(
                    queue + AVAILABLE + 4 + 2 * usize::from(index),
                    &(index % 4).to_le_bytes(),
                );
            }
        }
        let _ = write(
            &self.kernel.devices[0],
            &vhost(35, &[1u32, 0].map(u32::to_ne_bytes).concat()),
        );
    }
}

/// Until so many lies have been told: what came of it, or what was wrong.
fn lie(
    program: &str,
    lies: u64,
    seed: u64,
    rate_bps: Option<u64>,
    most_data: u64,
) -> Result<Outcome, String> {
    let directory = env::temp_dir().join(format!("lies-{}-{seed}", std::process::id()));
    let mut clock = start(program, &lab(rate_bps), directory.clone(), most_data);
    let others = company(&clock);
    let strange: Vec<OwnedFd> = vec![
        File::open("/dev/null").unwrap().into(),
        File::open("/dev/zero").unwrap().into(),
        File::open("/proc/self/status").unwrap().into(),
        std::os::unix::net::UnixStream::pair().unwrap().0.into(),
        Shared::new(4096).file.try_clone().unwrap().into(),
    ];
    let (mut chance, mut outcome) = (Chance(seed), Outcome::default());
    while outcome.messages + outcome.pages < lies {
        let kernel = Kernel::new(&clock, LIAR, LIAR_PORTS);
        let memories = (0..=LIAR_PORTS).map(|_| Shared::new(MEMORY)).collect();
        let mut liar = Liar {
            kernel,
            memories,
            chance: &mut chance,
            outcome: &mut outcome,
            strange: &strange,
            gone: false,
        };
        liar.live();
        let ended = liar.gone;
        drop(liar);
        outcome.liars += 1;
        outcome.ended += u64::from(ended);
        outcome.largest = outcome.largest.max(clock.anonymous());
        let before = others.turns.load(Ordering::Relaxed);
        let over = Instant::now();
        while others.turns.load(Ordering::Relaxed) == before {
            let done = clock.process.try_wait().unwrap();
            let broken = done.map(|how| format!("the clock ended: {how}"));
            let late =
                (over.elapsed() > 20 * LONGEST).then(|| "the others get no turn".to_string());
            if let Some(wrong) = broken.or(late) {
                let _ = clock.process.kill();
                let log = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(5).collect();
                return Err(format!(
                    "{wrong}, with liar {} of seed {seed}; it said {last:?}",
                    outcome.liars
                ));
            }
            thread::sleep(Duration::from_micros(20));
        }
        outcome.slowest = outcome.slowest.max(over.elapsed());
    }
    others.over.store(true, Ordering::Relaxed);
    let log = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    clock.end();
    for thread in others.threads {
        thread.join().map_err(|_| "a thread failed".to_string())??;
    }
    show(seed, &outcome, &log);
    let _ = std::fs::remove_dir_all(directory);
    if outcome.slowest > LONGEST {
        return Err(format!(
            "the others waited {:?} for a turn",
            outcome.slowest
        ));
    }
    Ok(outcome)
}

fn show(seed: u64, outcome: &Outcome, log: &str) {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for line in log.lines().filter_map(|line| line.strip_prefix("liar: ")) {
        let plain: String = line
            .chars()
            .filter(|letter| !letter.is_ascii_digit())
            .collect();
        *reasons
            .entry(
                plain
                    .trim_end_matches("; it is no longer on the clock")
                    .into(),
            )
            .or_default() += 1;
    }
    let Outcome {
        messages,
        pages,
        liars,
        ended,
        slowest,
        largest,
    } = outcome;
    println!(
        "{}",
        json!({"seed": seed, "messages": messages, "pages": pages, "liars": liars, "ended": ended,
            "slowest_ms": slowest.as_millis() as u64, "largest_mb": largest / MB, "reasons": reasons})
    );
}

fn given(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().map_or(otherwise, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number"))
    })
}

/// Frames of at most 17 MB for each port, by under_way.rs, and 64 MB for all else.
#[test]
fn nobody_is_held_up_by_a_kernel_that_lies_over_links_with_a_rate() {
    let program = env::var("CLOCK").unwrap_or_else(|_| env!("CARGO_BIN_EXE_clock").into());
    let (lies, seed) = (given("LIES", 40_000) / 2, given("SEED", 1));
    lie(
        &program,
        lies,
        seed,
        Some(100_000_000),
        (64 + 17 * LIAR_PORTS as u64) * MB,
    )
    .unwrap();
}

/// Where links have no rate, 256 MiB are under way for a host and 16 MiB for each of its ports.
#[test]
fn nobody_is_held_up_by_a_kernel_that_lies_over_links_without_a_rate() {
    let program = env::var("CLOCK").unwrap_or_else(|_| env!("CARGO_BIN_EXE_clock").into());
    let (lies, seed) = (given("LIES", 40_000) / 2, given("SEED", 1) + 1_000_000);
    lie(
        &program,
        lies,
        seed,
        None,
        (64 + 269 + 17 * LIAR_PORTS as u64) * MB,
    )
    .unwrap();
}
