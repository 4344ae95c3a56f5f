//! Everything that reads bytes from a guest or a client, with bytes that a search finds: what a kernel writes to its sockets,
//! its page and its queues, what its console puts out, and requests.
//!
//! INPUTS says how many are tried of each (else some hundreds), SEED where chance begins. With
//! `RUSTFLAGS='-C instrument-coverage --cfg coverage'` the search keeps inputs that reach new code; `bench/run reach` does that at
//! length. An input that ends badly is shown.

// Modules of the program that are compiled once more here are not used as a whole.
#![allow(dead_code, unexpected_cfgs)]

#[path = "../../src/calendar.rs"]
mod calendar;
#[path = "../../src/changed.rs"]
mod changed;
#[path = "../../src/course.rs"]
mod course;
mod coverage;
#[path = "../../src/delivery.rs"]
mod delivery;
#[path = "../../src/device.rs"]
mod device;
#[path = "../../src/frames.rs"]
mod frames;
#[path = "../../src/gate.rs"]
mod gate;
#[path = "../interleavings/guest.rs"]
mod guest;
#[path = "../../src/host.rs"]
mod host;
#[path = "../hostile/kernel.rs"]
mod kernel;
mod liar;
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
#[path = "../model/script.rs"]
mod script;
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

use std::env;
use std::sync::Mutex;

use frames::{FromAgent, Head, ToAgent, HEAD, HELLO, LONGEST_FROM_AGENT};
use orders::{Request, Topology};
use scheduler::Scheduler;

/// The counters are the process's, so one search runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn given(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().map_or(otherwise, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number"))
    })
}

fn search(name: &str, inputs: u64, seeds: &[Vec<u8>], act: impl Fn(&[u8])) {
    let _one = ONE_AT_A_TIME.lock();
    let found = coverage::search(seeds, given("INPUTS", inputs), given("SEED", 1), act);
    println!(
        "{{\"of\": \"{name}\", \"inputs\": {}, \"kept\": {}, \"reached\": {}}}",
        found.inputs, found.kept, found.reached
    );
    assert!(
        !cfg!(coverage) || found.reached > 5,
        "the counters are there"
    );
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&7u32.to_be_bytes()[..], &[kind], &length, payload].concat()
}

/// The heads of the frames that are whole behind the greeting, as one reads them who has all bytes; None where a frame begins
/// that no agent sends.
fn heads(bytes: &[u8]) -> Option<Vec<Head>> {
    let mut heads = Vec::new();
    let greeting = bytes.windows(HELLO.len()).position(|part| part == HELLO);
    let mut rest = &bytes[greeting.map_or(bytes.len(), |at| at + HELLO.len())..];
    while let Some((head, behind)) = rest.split_first_chunk::<HEAD>() {
        let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let (channel, kind, length) = (number(0), head[4], number(5) as usize);
        if length > LONGEST_FROM_AGENT {
            return None;
        }
        let Some(next) = behind.get(length..) else {
            break;
        };
        heads.push(Head {
            channel,
            kind,
            length,
        });
        rest = next;
    }
    Some(heads)
}

/// In any pieces, what is found is what is there.
#[test]
fn output_of_consoles() {
    let frames = [
        frame(frames::STDOUT, b"hello"),
        frame(frames::EXIT, b"{}"),
        frame(frames::STDERR, &[0; 100]),
    ];
    let seed = [b"\x03noise".to_vec(), HELLO.to_vec(), frames.concat()].concat();
    search("consoles", 2000, &[seed], |input| {
        let size = 1 + usize::from(*input.first().unwrap_or(&0));
        let (mut line, mut found) = (FromAgent::default(), Vec::new());
        let fed = input.chunks(size).try_for_each(|piece| {
            found.extend(line.feed(piece)?);
            std::io::Result::Ok(())
        });
        assert_eq!(fed.ok().map(|()| found), heads(input));
    });
}

/// Each frame is whole, and they follow each other without a gap.
#[test]
fn input_of_clients() {
    let seed = [
        frame(frames::RUN, b"{}"),
        frame(frames::WAIT, &[0; 9]),
        frame(frames::KILL, b""),
    ];
    search("clients", 2000, &[seed.concat()], |input| {
        let size = 1 + usize::from(*input.last().unwrap_or(&0));
        let (mut line, mut bytes) = (ToAgent::default(), Vec::new());
        for (head, frame) in input.chunks(size).flat_map(|piece| line.feed(piece)) {
            assert_eq!(frame.len(), frames::HEAD + head.length);
            bytes.extend(frame);
        }
        assert_eq!(bytes, input[..bytes.len()]);
    });
}

/// What a request may do to hosts and links, it does or refuses.
#[test]
fn requests() {
    let wire = |host: usize, port: usize| {
        format!(
            r#"{{"host":{host},"port":{port},"wire":{{"rate_bps":7,"queue_bytes":9000,"delay_ns":5,
            "jitter_ns":1,"loss":1,"seed":1,"burst_begins":1,"burst_ends":1,"reorder":1,"duplicate":1,"corrupt":1,"slot_ns":1,
            "jitter_distribution":2,"jitter_correlation":1,"jitter_overtakes":0,"burst_spares":1,"between_bursts":1,
            "credit_bytes":1,"excess_drops":0,"hole_bytes":1400}}}}"#
        )
    };
    let (one, other) = (wire(0, 0), wire(1, 0));
    let wires = format!("{one},{other}");
    let topology = format!(
        r#""hosts":[{{"name":"a","ports":["02:00:00:00:00:00"],"processor":{{"frame_ns":1,"byte_ns":1.5}}}},
        {{"name":"b","ports":["02:00:00:00:00:01"]}}],"links":[[[0,0],[1,0]],[[1,0],[0,0]]],"wires":[{wires}]"#
    );
    // The last are changed most.
    let seeds = [
        r#"{"op":"sleep","until_ns":7,"turn":1}"#.into(),
        r#"{"op":"pause_host","host":0}"#.into(),
        format!(r#"{{"op":"set_topology",{topology}}}"#),
        format!(r#"{{"op":"set","wires":[{one}]}}"#),
    ];
    let seeds = seeds.map(String::into_bytes);
    let lab: Topology = serde_json::from_str(&format!("{{{topology}}}")).expect("a topology");
    assert!(links::Links::new(&lab).is_ok());
    search("requests", 6000, &seeds, |input| {
        let Ok(request) = serde_json::from_slice(input) else {
            return;
        };
        let lab = serde_json::from_str(&format!("{{{topology}}}")).expect("a topology");
        let mut scheduler = Scheduler::new(0, 1, lab).expect("links");
        match request {
            Request::Set { wires } => drop(scheduler.set_wires(wires)),
            Request::SetTopology(topology) => drop(scheduler.set_topology(topology)),
            Request::PauseHost { host } => drop(scheduler.pause(host, true)),
            Request::ResumeHost { host } => drop(scheduler.pause(host, false)),
            _ => {}
        }
        let Scheduler { hosts, links, .. } = &mut scheduler;
        let states = links.states(1);
        for state in &states {
            let from = (state.settings.host, state.settings.port);
            for now in [0, 1, 1_000_000_000_000] {
                links.send(hosts, from, now, now, vec![0; 60]);
            }
        }
        assert!(links.least_ns() > 0);
    });
}

/// Whatever a kernel does, the others have their turns, and the lab's time goes on.
#[test]
fn kernels() {
    search("kernels", 300, &liar::seeds(), liar::act);
}
