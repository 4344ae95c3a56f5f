//! What the agent reads from its line, with bytes that a search finds (provision/clock/tests/fuzz/coverage.rs): frames in any
//! pieces, requests, sizes of terminals. And words of any bytes come through a request as they were.
//!
//! INPUTS says how many are tried of each (else some thousands), SEED where chance begins.

// Modules of the program that are compiled once more here are not used as a whole.
#![allow(dead_code, unexpected_cfgs)]

#[path = "../../src/command.rs"]
mod command;
#[path = "../../../clock/tests/fuzz/coverage.rs"]
mod coverage;
#[path = "../../src/json.rs"]
mod json;
#[path = "../../src/light.rs"]
mod light;
#[path = "../../../clock/tests/model/script.rs"]
mod script;
#[path = "../../src/system.rs"]
mod system;
#[path = "../../src/wire.rs"]
mod wire;

use std::env;
use std::sync::Mutex;

use command::Request;
use json::Value;
use wire::{encoded, Decoder, INPUT, KILL, RUN};

/// The counters are the process's, so one search runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn given(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().map_or(otherwise, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number"))
    })
}

fn search(name: &str, seeds: &[&[u8]], act: impl Fn(&[u8])) {
    let _one = ONE_AT_A_TIME.lock();
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.to_vec()).collect();
    let found = coverage::search(&seeds, given("INPUTS", 5000), given("SEED", 1), act);
    println!(
        "{{\"of\": \"{name}\", \"inputs\": {}, \"kept\": {}, \"reached\": {}}}",
        found.inputs, found.kept, found.reached
    );
}

/// Each frame is whole, and they follow each other without a gap.
#[test]
fn the_line() {
    let seed = [
        encoded(1, RUN, b"{}"),
        encoded(2, INPUT, &[9; 40]),
        encoded(2, KILL, b""),
    ];
    search("line", &[&seed.concat()], |input| {
        let size = 1 + usize::from(*input.last().unwrap_or(&0));
        let (mut decoder, mut bytes) = (Decoder::default(), Vec::new());
        for frame in input.chunks(size).flat_map(|piece| decoder.feed(piece)) {
            bytes.extend(encoded(frame.channel, frame.kind, &frame.payload));
        }
        assert_eq!(bytes, input[..bytes.len()]);
        let rest = &input[bytes.len()..];
        if let Some((head, payload)) = rest.split_at_checked(9) {
            let length = u32::from_be_bytes(head[5..].try_into().unwrap()) as usize;
            assert!(payload.len() < length, "a whole frame was left");
        }
    });
}

/// They are requests or none, and a request has a program.
#[test]
fn requests() {
    // The last are changed most.
    let seeds: [&[u8]; 4] = [
        br#"{"argv": ["true"], "timeout_s": null, "terminal": null, "more": {"deep": [[[{}]], true, false]}}"#,
        br#"[30, 100]"#,
        br#"{"argv": [], "timeout_s": -1e999}"#,
        br#"{"argv": ["sh", "-c", "a \"b\"\n\u00e4\ud83d\ude00\udcff"], "timeout_s": 2.5e1, "terminal": [24, 80]}"#,
    ];
    search("requests", &seeds, |input| {
        if let Some(request) = Request::read(input) {
            assert!(!request.argv.is_empty());
        }
        // What is read is all of it: with something more behind it there is none.
        if Value::read(input).is_some() {
            assert_eq!(Value::read(&[input, b" x"].concat()), None);
            assert_eq!(
                Value::read(&[b" ", input, b"\n"].concat()),
                Value::read(input)
            );
        }
    });
}

/// As Python's json writes a str that os.fsdecode has made.
fn written(word: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in word.utf8_chunks() {
        let units = chunk.valid().encode_utf16().collect::<Vec<u16>>();
        let halves = chunk.invalid().iter().map(|byte| 0xdc00 + u16::from(*byte));
        for unit in units.into_iter().chain(halves) {
            text.push_str(&format!("\\u{unit:04x}"));
        }
    }
    text + "\""
}

#[test]
fn words_of_any_bytes_come_as_they_were() {
    let seeds: [&[u8]; 3] = [b"a word", "ä😀".as_bytes(), b"\xff\xc3\xa4\x80\xf0\x9f"];
    search("words", &seeds, |input| {
        let text = format!(r#"{{"argv": [{}]}}"#, written(input));
        let request = Request::read(text.as_bytes()).expect("a request");
        assert_eq!(request.argv, [input]);
    });
    assert_eq!(written(b"a\xff"), "\"\\u0061\\udcff\"");
}
