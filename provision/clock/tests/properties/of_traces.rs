//! A trace delivers byte for byte what its opportunities allow, and a change between a trace and a rate loses no work.

use crate::for_all;
use crate::of_changes::Line;
use crate::of_wires::{sent, Sent};
use crate::script::{Chance, MS};
use crate::trace::Trace;
use crate::wire::Settings;

/// The milliseconds of a trace, as its file has them.
fn lines(chance: &mut Chance) -> Vec<u64> {
    let mut at = chance.pick(&[0, 0, 1, 7]);
    let mut lines: Vec<u64> = (0..1 + chance.below(30))
        .map(|_| {
            at += chance.pick(&[0, 0, 1, 1, 2, 40]);
            at
        })
        .collect();
    if at == 0 {
        lines.push(1);
    }
    lines
}

/// In runs, of the same distance where there are.
fn runs(lines: &[u64]) -> String {
    let mut counted: Vec<(u64, u64)> = Vec::new();
    for line in lines {
        match counted.last_mut().filter(|(at, _)| at == line) {
            Some((_, count)) => *count += 1,
            None => counted.push((*line, 1)),
        }
    }
    let mut text: Vec<(u64, u64, u64)> = Vec::new();
    let mut before = 0;
    for (at, count) in counted {
        let apart = at - before;
        match text
            .last_mut()
            .filter(|run| (run.0, run.1) == (apart, count))
        {
            Some(run) => run.2 += 1,
            None => text.push((apart, count, 1)),
        }
        before = at;
    }
    let words: Vec<String> = text
        .iter()
        .map(|(apart, count, moments)| format!("{apart}x{count}*{moments}"))
        .collect();
    words.join(" ")
}

fn of(lines: &[u64]) -> Settings {
    let text = runs(lines);
    Settings {
        trace_runs: Some(Trace::parse(&text).expect("a trace")),
        trace: Some(text),
        ..Settings::default()
    }
}

/// When frames leave, of which each came at a moment and takes so many bytes: opportunity after opportunity, and byte by byte.
fn reference(lines: &[u64], frames: &[(u64, u64)]) -> Vec<u64> {
    let period = lines[lines.len() - 1];
    let mut left = Vec::new();
    let mut unsent = 0;
    for cycle in 0.. {
        for line in lines {
            let moment = (cycle * period + line) * MS;
            for _ in 0..1504 {
                match frames.get(left.len()) {
                    None => return left,
                    Some((came, _)) if *came >= moment => break,
                    Some((_, bytes)) => {
                        unsent += 1;
                        if unsent == *bytes {
                            unsent = 0;
                            left.push(moment);
                        }
                    }
                }
            }
        }
    }
    unreachable!("a trace has no end")
}

/// As mahimahi does it, where a packet also has the 4 bytes of its TUN device.
#[test]
fn a_trace_delivers_byte_for_byte_what_its_opportunities_allow() {
    for_all(|chance| {
        let lines = lines(chance);
        let mut line = Line::new(of(&lines));
        let mut frames = Vec::new();
        for Sent { now, frame, .. } in sent(chance, 1) {
            frames.push((now, frame.len() as u64 - 14 + 4));
            line.carry(now, frame);
        }
        assert_eq!(line.times(), reference(&lines, &frames));
    });
}

/// In a queue of frames, as many wait as it has room for: the one that is leaving is among them.
#[test]
fn a_queue_of_frames_holds_so_many() {
    for_all(|chance| {
        let most = 1 + chance.below(20);
        let slow = Settings {
            rate_bps: Some(1_000_000),
            ..Settings::default()
        };
        let settings = Settings {
            queue_frames: Some(most),
            ..if chance.one_in(2) {
                of(&lines(chance))
            } else {
                slow
            }
        };
        let mut line = Line::new(settings);
        for Sent { now, frame, .. } in sent(chance, 1) {
            let waiting = line.times().iter().filter(|at| **at > now).count() as u64;
            // What leaves at once arrives a nanosecond later.
            let dropped = line.wire.counts().dropped;
            line.carry(now, frame);
            assert_eq!(line.wire.counts().dropped > dropped, waiting >= most);
        }
    });
}

/// From a rate to a trace and back, each bit leaves once.
#[test]
fn a_trace_goes_on_with_what_a_rate_has_left() {
    for_all(|chance| {
        let rate = Settings {
            rate_bps: Some(8_000_000),
            ..Settings::default()
        };
        // A byte takes a microsecond; 1000 of them are a frame, and an opportunity a millisecond is as much in frames of 1514.
        let mut line = Line::new(rate.clone());
        let count = 20 + chance.below(50);
        (0..count).for_each(|_| line.carry(0, vec![0; 1514]));
        let (begins, lasts) = (chance.below(5000) * 1000, 1 + chance.below(15));
        line.set(begins, of(&[1]));
        let ends = begins + lasts * MS;
        line.set(ends, rate);
        let bytes_before = begins / 1000;
        let found = *line.times().last().expect("all arrive");
        // By the trace each opportunity takes 1504 bytes of a frame and 10 that count nothing, so a frame each time.
        let rest = count * 1514 - bytes_before;
        // Of the frame that was leaving nobody knows whether it has sent these 10.
        let least = rest - lasts * 1514 - 10;
        let most = rest - lasts * 1504;
        let range = ends + least * 1000..=ends + (most + 10) * 1000;
        assert!(range.contains(&found), "{found} is not in {range:?}");
    });
}
