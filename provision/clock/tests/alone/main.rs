//! What one kernel, its supervisor and a client see of the running clock: its control line, a terminal's pace, its time of day,
//! and what its processor and the memory of a link have no room for.

// Modules of other tests are not used as a whole.
#![allow(dead_code)]

#[path = "../hostile/kernel.rs"]
mod kernel;

use std::env;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{setsockopt, MsgFlags};
use nix::sys::time::{TimeVal, TimeValLike};
use serde_json::{json, Value};

use kernel::{
    ask, has_unread, read_with, sleep, vhost, write, Card, Client, Clock, Kernel, Read, AVAILABLE,
    BUFFERS, DUE_COUNT, DUE_TAKEN, HELLO, NO_TURN, QUEUE, USED,
};

const EPOCH_NS: u64 = 1_000_000_000_000_000_000;
const MS: u64 = 1_000_000;
const MOST_DATA: u64 = 1 << 30;
const PATIENCE_S: i64 = 60;
// Of include/uapi/linux/um_timetravel.h.
const GET_TIME_OF_DAY: u32 = 8;
// Kinds of frames on a control line (src/frames.rs).
const RUN: u8 = 1;
const STDOUT: u8 = 5;
const EXIT: u8 = 7;
const WAIT: u8 = 9;
const PACE: u8 = 10;
const CHANNEL: u32 = 5;
/// Behind the buffers for input, the one frame that is sent again and again.
const OUTPUT: usize = BUFFERS + 256 * 2048;
const NET_HEADER: usize = 12;

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let head = [CHANNEL, payload.len() as u32].map(u32::to_be_bytes);
    [&head[0], &[kind][..], &head[1], payload].concat()
}

/// A client that acts alone waits for the command's end.
fn wait_for_end() -> Vec<u8> {
    frame(WAIT, &[&NO_TURN.to_be_bytes()[..], &[1]].concat())
}

fn host(name: &str, ports: &[&str], processor: Value) -> Value {
    json!({"name": name, "ports": ports, "processor": processor})
}

/// One host without a link.
fn alone() -> Value {
    json!({"epoch_ns": EPOCH_NS, "hosts": [host("alone", &[], Value::Null)], "links": [], "wires": []})
}

/// Two hosts and a link. `processor` is that of the first, `rate_bps` that of the link, whose queue has no bound.
fn pair(processor: Value, rate_bps: Option<u64>) -> Value {
    let wire = json!({"rate_bps": rate_bps, "queue_bytes": null, "delay_ns": 5 * MS, "jitter_ns": 0, "loss": 0, "seed": 1,
        "burst_begins": 0, "burst_ends": 0, "reorder": 0, "duplicate": 0, "corrupt": 0, "slot_ns": 0});
    let wires = [0, 1].map(|host| json!({"host": host, "port": 0, "wire": wire}));
    json!({"epoch_ns": EPOCH_NS, "at_once": 2, "links": [[[0, 0], [1, 0]]], "wires": wires, "hosts": [
        host("sends", &["02:00:00:00:00:00"], processor), host("hears", &["02:00:00:00:00:01"], Value::Null)]})
}

/// The running clock of a lab, and its folder.
struct Running {
    clock: Clock,
    directory: PathBuf,
}

impl Running {
    fn new(name: &str, lab: &Value) -> Running {
        let directory = env::temp_dir().join(format!("alone-{}-{name}", std::process::id()));
        let clock = kernel::start(
            env!("CARGO_BIN_EXE_clock"),
            lab,
            directory.clone(),
            MOST_DATA,
        );
        Running { clock, directory }
    }

    /// A kernel that has come up, and has its first turn.
    fn boot(&self, host: usize, ports: usize) -> Guest {
        let mut kernel = Kernel::new(&self.clock, host, ports);
        for fd in [&kernel.calendar, &kernel.line] {
            setsockopt(fd, ReceiveTimeout, &TimeVal::seconds(PATIENCE_S)).unwrap();
        }
        assert!(kernel.start(), "it got no page");
        let cards: Vec<Card> = (0..=ports)
            .map(|device| Card::new(&kernel, device))
            .collect();
        cards[0].say(&kernel, HELLO);
        Guest { kernel, cards }
    }

    /// Both hosts of a pair: neither has a turn before the other has reported.
    fn boot_both(&self) -> (Guest, Guest) {
        thread::scope(|scope| {
            let other = scope.spawn(|| self.boot(1, 1));
            (self.boot(0, 1), other.join().expect("it comes up"))
        })
    }

    /// End the clock: the lines that it has said.
    fn end(self) -> Vec<String> {
        self.clock.end();
        let said = std::fs::read_to_string(self.directory.join("log")).unwrap();
        let _ = std::fs::remove_dir_all(self.directory);
        said.lines().map(String::from).collect()
    }
}

struct Guest {
    kernel: Kernel,
    /// The console's, then the ports'.
    cards: Vec<Card>,
}

impl Guest {
    /// End the turn. `request`: when it asks to run next.
    fn rest(&self, request: Option<u64>) {
        assert!(self.kernel.wait(request), "the clock has ended");
    }

    /// Until it has its next turn.
    fn turn(&self) {
        let mut bytes = [0; 16];
        let (read, _) = read_with(&self.kernel.calendar, &mut bytes, MsgFlags::empty());
        assert_eq!(read, Read::Bytes(16), "the clock has ended");
    }

    /// All that its console has got since it came up, in buffers of which none was used twice.
    fn input(&self) -> Vec<u8> {
        let memory = &self.cards[0].memory;
        let used = usize::from(u16::from_le_bytes(memory.get(USED + 2)));
        let word = |at| u32::from_le_bytes(memory.get(at)) as usize;
        let piece = |index: usize| {
            let entry = USED + 4 + 8 * index;
            let whole: [u8; 2048] = memory.get(BUFFERS + 2048 * word(entry));
            whole[..word(entry + 4)].to_vec()
        };
        (0..used).flat_map(piece).collect()
    }

    /// Send that many frames of so many bytes each by its first port, all at this moment.
    fn flood(&self, count: usize, bytes: usize) {
        let memory = &self.cards[1].memory;
        memory.put(OUTPUT, &vec![0; NET_HEADER + bytes]);
        let descriptor = [OUTPUT as u64, (NET_HEADER + bytes) as u64].map(u64::to_le_bytes);
        for slot in 0..256 {
            memory.put(QUEUE + 16 * slot, &descriptor.concat());
            memory.put(
                QUEUE + AVAILABLE + 4 + 2 * slot,
                &(slot as u16).to_le_bytes(),
            );
        }
        let mut sent = 0;
        while sent < count {
            sent = count.min(sent + 256);
            memory.put(QUEUE + AVAILABLE + 2, &(sent as u16).to_le_bytes());
            let kick = [1u32, 0].map(u32::to_ne_bytes).concat();
            write(&self.kernel.devices[1], &vhost(35, &kick)).unwrap();
            let (read, _) = read_with(&self.kernel.devices[1], &mut [0; 64], MsgFlags::empty());
            assert_eq!(read, Read::Bytes(20), "the clock took them");
        }
    }

    /// The supervisor's end of its control line: send it, in pieces of so many bytes that the clock reads one by one.
    fn line(&self, bytes: &[u8], pieces: usize) {
        for piece in bytes.chunks(pieces) {
            write(&self.kernel.line, piece).unwrap();
            let began = Instant::now();
            while has_unread(&self.kernel.line) {
                assert!(
                    began.elapsed().as_secs() < PATIENCE_S as u64,
                    "the clock never reads the line"
                );
                thread::sleep(Duration::from_micros(100));
            }
        }
    }

    fn heard_on_line(&self, count: usize) -> Vec<u8> {
        let mut heard = Vec::new();
        while heard.len() < count {
            let mut bytes = [0; 4096];
            match read_with(&self.kernel.line, &mut bytes, MsgFlags::empty()).0 {
                Read::Bytes(read) => heard.extend_from_slice(&bytes[..read]),
                other => panic!("{other:?} after {heard:?}"),
            }
        }
        heard
    }
}

/// What the first host's wire has counted.
fn counted(client: &mut Client, what: &str) -> u64 {
    ask(client, json!({"op": "wires"}))["wires"][0][what]
        .as_u64()
        .expect("a number")
}

#[test]
fn a_console_gets_what_its_line_brings_in_pieces_and_the_line_what_the_console_says() {
    let running = Running::new("line", &alone());
    let guest = running.boot(0, 0);
    guest.rest(None);
    let (run, wait) = (frame(RUN, b"{\"argv\": [\"true\"]}"), wait_for_end());
    guest.line(&[run.clone(), wait].concat(), 4);
    guest.turn();
    assert_eq!(
        guest.input(),
        run,
        "the clock's own frames are not the agent's"
    );
    let said = [frame(STDOUT, b"hello"), frame(EXIT, b"\0")].concat();
    guest.cards[0].say(&guest.kernel, &said);
    guest.rest(None);
    assert_eq!(
        guest.heard_on_line(HELLO.len() + said.len()),
        [HELLO, &said].concat()
    );
    assert_eq!(running.end(), Vec::<String>::new());
}

#[test]
fn a_second_takes_a_second_while_somebody_sits_at_a_terminal() {
    let running = Running::new("pace", &alone());
    let guest = running.boot(0, 0);
    guest.rest(None);
    guest.line(&[frame(RUN, b"{}"), frame(PACE, b"")].concat(), 64);
    guest.turn();
    let (from, began) = (guest.kernel.time(), Instant::now());
    while guest.kernel.time() < from + 300 * MS {
        guest.rest(Some(guest.kernel.time() + 20 * MS));
        guest.turn();
    }
    // The first moment may have begun before it was looked at, and a window is ahead by its 10 ms.
    assert!(
        began.elapsed() > Duration::from_millis(270),
        "{:?}",
        began.elapsed()
    );
    guest.rest(None);
    running.end();
}

#[test]
fn a_kernels_time_of_day_leaves_its_pauses_out() {
    let running = Running::new("day", &pair(Value::Null, None));
    let (guest, other) = running.boot_both();
    other.rest(None);
    let mut client = running.clock.client();
    guest.rest(Some(1000 * MS));
    sleep(&mut client, 200 * MS);
    ask(&mut client, json!({"op": "pause_host", "host": 0}));
    sleep(&mut client, 700 * MS);
    ask(&mut client, json!({"op": "resume_host", "host": 0}));
    let sleeps = thread::spawn(move || sleep(&mut client, 1600 * MS));
    guest.turn();
    assert_eq!(guest.kernel.time(), 1000 * MS);
    assert!(guest.kernel.tell(GET_TIME_OF_DAY));
    let mut answer = [0; 16];
    let (read, _) = read_with(&guest.kernel.calendar, &mut answer, MsgFlags::empty());
    assert_eq!(read, Read::Bytes(16));
    let time = u64::from_ne_bytes(answer[8..].try_into().unwrap());
    assert_eq!(time, EPOCH_NS + 1000 * MS);
    guest.rest(None);
    sleeps.join().expect("the lab's time goes on");
    running.end();
}

/// At 1 ms a frame, 1,000 wait beside the one that is processed.
#[test]
fn a_processor_has_a_thousand_frames_wait_and_loses_the_rest() {
    let running = Running::new(
        "processor",
        &pair(json!({"frame_ns": MS, "byte_ns": 0.0}), None),
    );
    let (sends, hears) = running.boot_both();
    sends.flood(1100, 60);
    sends.rest(None);
    hears.rest(None);
    let mut client = running.clock.client();
    assert_eq!(counted(&mut client, "overrun"), 99);
    assert_eq!(counted(&mut client, "frames"), 1001);
    running.end();
}

/// A card has 256 buffers. What finds none waits for 16 turns of a kernel that gives none back.
#[test]
fn frames_wait_for_room_and_are_lost_where_a_kernel_makes_none() {
    let running = Running::new("vain", &pair(Value::Null, None));
    let (sends, hears) = running.boot_both();
    sends.flood(300, 60);
    sends.rest(None);
    hears.rest(None);
    let mut client = running.clock.client();
    let lost_by = |until: u64, client: &mut Client| {
        sleep(client, until);
        counted(client, "overrun")
    };
    let turns = thread::spawn(move || {
        hears.turn();
        while hears.kernel.time() < 25 * MS {
            hears.rest(Some(hears.kernel.time() + MS));
            hears.turn();
        }
        hears.rest(None);
    });
    assert_eq!(lost_by(9 * MS, &mut client), 0);
    assert_eq!(lost_by(30 * MS, &mut client), 44);
    turns.join().expect("it has turns");
    running.end();
}

/// As of a kernel that has its interrupts off, and looks again by its timer.
#[test]
fn a_frame_that_a_kernel_was_to_look_at_and_did_not_is_there_in_its_next_turn() {
    let running = Running::new("due", &pair(Value::Null, None));
    let (sends, hears) = running.boot_both();
    let used = || u16::from_le_bytes(hears.cards[1].memory.get(USED + 2));
    sends.rest(Some(2 * MS));
    hears.rest(Some(6 * MS));
    let mut client = running.clock.client();
    let sleeps = thread::spawn(move || sleep(&mut client, 20 * MS));
    sends.turn();
    sends.flood(1, 60);
    sends.rest(None);
    hears.turn();
    let (due, at) = (hears.kernel.page().get(DUE_COUNT), hears.kernel.time());
    assert_eq!((u32::from_ne_bytes(due), used()), (1, 0));
    hears.kernel.page().put(DUE_TAKEN, &0u32.to_ne_bytes());
    hears.rest(Some(at + 2 * MS));
    hears.turn();
    assert_eq!(used(), 1);
    hears.rest(None);
    sleeps.join().expect("the lab's time goes on");
    running.end();
}

/// It may take a turn for each frame, however many turns it may take otherwise: ten thousand.
#[test]
fn a_kernel_has_turns_for_all_frames_of_a_window() {
    let running = Running::new("many", &pair(Value::Null, Some(1_000_000_000)));
    let (sends, hears) = running.boot_both();
    sends.rest(Some(2 * MS));
    hears.rest(Some(6 * MS));
    let mut client = running.clock.client();
    let sleeps = thread::spawn(move || sleep(&mut client, 20 * MS));
    sends.turn();
    sends.flood(3000, 60);
    sends.rest(None);
    let mut seen = 0;
    while seen < 3000 {
        hears.turn();
        let page = hears.kernel.page();
        let due = u32::from_ne_bytes(page.get(DUE_COUNT));
        assert!(due > 0, "{seen} frames");
        seen += due;
        page.put(DUE_TAKEN, &due.to_ne_bytes());
        hears.cards[1]
            .memory
            .put(USED + 2, &(seen as u16).to_le_bytes());
        hears.cards[1].give_back();
        hears.rest((seen < 3000).then_some(6 * MS));
    }
    sleeps.join().expect("the lab's time goes on");
    assert_eq!(running.end(), Vec::<String>::new());
}

#[test]
fn a_kernel_that_takes_its_memory_away_is_ended_and_told_of() {
    let running = Running::new("taken", &alone());
    let guest = running.boot(0, 0);
    guest.rest(None);
    guest.cards[0].memory.shorten(0);
    guest.line(&[frame(RUN, b"{}"), wait_for_end()].concat(), 64);
    let (read, _) = read_with(&guest.kernel.calendar, &mut [0; 16], MsgFlags::empty());
    assert_eq!(read, Read::Gone);
    let said = running.end();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("alone: "), "{said:?}");
    assert!(said[0].contains("memory"), "{said:?}");
}

/// 16 MiB may be under way, and 8 times what leaves during the delay, 5 kB: 256 frames that take 64 KiB each.
#[test]
fn that_a_link_has_no_more_room_is_told_once() {
    let running = Running::new("room", &pair(Value::Null, Some(1_000_000)));
    let (sends, hears) = running.boot_both();
    sends.flood(300, (64 << 10) - 128);
    sends.rest(None);
    hears.rest(None);
    let mut client = running.clock.client();
    assert_eq!(counted(&mut client, "overrun"), 44);
    let said = running.end();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("sends: no more of what it sends is kept under way"));
}
