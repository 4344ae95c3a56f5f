//! A change of a link reaches what waits in it: as in a queue that is worked through bit by bit, by what the link is like at
//! each moment.

use std::collections::{BTreeMap, HashMap};

use crate::for_all;
use crate::of_wires::{any, sent, share, Sent};
use crate::script::{Chance, MS};
use crate::wire::{Settings, Wire, LEAST_NS};

const ALL: u64 = 1 << 32;

/// A wire, and what arrives of it.
pub struct Line {
    pub wire: Wire,
    /// By the number of the copy, when it arrives, and the frame.
    arriving: BTreeMap<u64, (u64, Vec<u8>)>,
}

impl Line {
    pub fn new(settings: Settings) -> Line {
        Line {
            wire: Wire::new(settings),
            arriving: BTreeMap::new(),
        }
    }

    pub fn carry(&mut self, now: u64, frame: Vec<u8>) {
        let mut number = self.wire.numbered();
        for arrival in self.wire.carry(now, frame).into_iter().flatten() {
            number += 1;
            self.arriving.insert(number, arrival);
        }
    }

    pub fn set(&mut self, now: u64, settings: Settings) {
        let mut taken = HashMap::new();
        if let Some(first) = self.wire.first_changed(now, &settings) {
            for (number, (time, frame)) in self.arriving.split_off(&first) {
                assert!(time > now, "it had arrived");
                taken.insert(number, frame);
            }
        }
        for (number, time, frame) in self.wire.set(now, settings, taken) {
            assert!(time > now, "it arrives in the past");
            self.arriving.insert(number, (time, frame));
        }
    }

    pub fn times(&self) -> Vec<u64> {
        self.arriving.values().map(|one| one.0).collect()
    }
}

/// What happens to a link, in order: a frame comes, or it is set.
#[allow(clippy::large_enum_variant)] // there are few
enum Event {
    Comes(u64, Vec<u8>),
    IsSet(u64, Settings),
}

/// Frames, most of them in bursts, and changes between them and after them.
fn events(chance: &mut Chance, settings: impl Fn(&mut Chance) -> Settings) -> Vec<Event> {
    let mut events: Vec<(u64, Event)> = Vec::new();
    let last = {
        let frames = sent(chance, 1);
        let last = frames.last().map_or(1, |one| one.now);
        for Sent { now, frame, .. } in frames {
            events.push((now, Event::Comes(now, frame)));
        }
        last
    };
    for _ in 0..chance.below(6) {
        let longer = chance.pick(&[MS, 30 * MS, 300 * MS]);
        let at = 1 + chance.below(last + longer);
        events.push((at, Event::IsSet(at, settings(chance))));
    }
    events.sort_by_key(|(at, _)| *at);
    events.into_iter().map(|(_, event)| event).collect()
}

/// A token bucket in floating point. All is in nanoseconds and bits.
struct Bucket {
    rate: f64,
    peak: f64,
    credit: f64,
    tokens: f64,
    /// How far it has come, and each frame that waits: its bits, how many of them the line has not sent, and its place.
    at: f64,
    waiting: Vec<(f64, f64, usize)>,
    left: Vec<f64>,
}

impl Bucket {
    fn of(settings: &Settings) -> Bucket {
        let mut bucket = Bucket {
            rate: 0.0,
            peak: 0.0,
            credit: 0.0,
            tokens: 0.0,
            at: 0.0,
            waiting: Vec::new(),
            left: Vec::new(),
        };
        bucket.set(settings);
        bucket
    }

    /// Without a frame that waits the credit is whole again, else what is left of it stays.
    fn set(&mut self, settings: &Settings) {
        let per_ns = |bps: Option<u64>| bps.map_or(f64::INFINITY, |bps| bps as f64 / 1e9);
        self.rate = per_ns(settings.rate_bps);
        self.peak = per_ns(settings.peak_bps);
        self.credit = settings.credit_bytes as f64 * 8.0;
        self.tokens = match self.waiting.first() {
            None => self.credit,
            // What the frame in front takes is not in the bucket any more.
            Some((bits, ..)) => self.tokens.min(self.credit + bits),
        };
    }

    /// Let time pass to `until`: the frame in front leaves when the bucket has let all of it pass, and its line has sent it.
    fn pass(&mut self, until: f64) {
        while let Some((bits, unsent, place)) = self.waiting.first().copied() {
            // The bucket goes into debt for the frame in front, so that it may begin to leave.
            let lacks = (bits - self.tokens).max(0.0) / self.rate;
            let takes = f64::max(lacks, unsent / self.peak);
            let rest = until - self.at;
            if takes > rest {
                self.tokens += rest * self.rate;
                if self.peak.is_finite() {
                    self.waiting[0].1 = (unsent - rest * self.peak).max(0.0);
                }
                self.at = until;
                return;
            }
            self.at += takes;
            self.tokens += if takes > 0.0 { takes * self.rate } else { 0.0 };
            self.tokens -= bits;
            self.left[place] = self.at;
            self.waiting.remove(0);
        }
        if self.rate.is_finite() {
            self.tokens += (until - self.at) * self.rate;
        }
        self.tokens = self.tokens.min(self.credit);
        self.at = until;
    }

    fn comes(&mut self, bytes: usize) {
        let bits = bytes as f64 * 8.0;
        self.waiting.push((bits, bits, self.left.len()));
        self.left.push(f64::NAN);
    }
}

/// Compare when each frame leaves: by the wire, and by the bucket.
fn compare(chance: &mut Chance, settings: impl Fn(&mut Chance) -> Settings) {
    let first = settings(chance);
    let (mut line, mut bucket) = (Line::new(first.clone()), Bucket::of(&first));
    // A part of a nanosecond for each frame that the wire has sent without a break, which is more of them at a lower rate.
    let (mut rounded, mut away) = (2.0, Vec::new());
    for event in events(chance, settings) {
        match event {
            Event::Comes(now, frame) => {
                bucket.pass(now as f64);
                rounded = if bucket.waiting.is_empty() && bucket.credit == 0.0 {
                    2.0
                } else {
                    rounded + 2.0
                };
                away.push(rounded);
                bucket.comes(frame.len());
                line.carry(now, frame);
            }
            Event::IsSet(now, settings) => {
                bucket.pass(now as f64);
                let before = f64::max(bucket.rate, bucket.peak.min(1e3));
                bucket.set(&settings);
                rounded = rounded * f64::max(1.0, before.min(1e3) / bucket.rate) + 2.0;
                line.set(now, settings);
            }
        }
        for (_, _, place) in &bucket.waiting {
            away[*place] = f64::max(away[*place], rounded);
        }
    }
    bucket.pass(1e18);
    let found = line.times();
    assert_eq!(found.len(), bucket.left.len());
    for (number, (found, right)) in found.iter().zip(&bucket.left).enumerate() {
        // A double has 53 bits.
        assert!(
            (*found as f64 - right).abs() < away[number] + right * 1e-12,
            "frame {number}: {found}, not {right} within {}",
            away[number]
        );
    }
}

fn rates(chance: &mut Chance) -> Settings {
    Settings {
        rate_bps: Some(chance.pick(&[300_000, 1_000_000, 8_000_000, 99_999_999, 1_000_000_007])),
        ..Settings::default()
    }
}

/// Work is conserved: of the bits that wait, as many leave as each rate lets through while it lasts, and none is idle.
#[test]
fn what_waits_leaves_by_each_rate_while_it_lasts() {
    for_all(|chance| {
        compare(chance, rates);
    });
}

#[test]
fn what_waits_leaves_at_once_where_the_rate_is_taken_away() {
    for_all(|chance| {
        compare(chance, |chance| match chance.one_in(2) {
            true => Settings::default(),
            false => rates(chance),
        });
    });
}

#[test]
fn what_waits_leaves_by_each_credit_and_each_peak_while_it_lasts() {
    for_all(|chance| {
        let settings = |chance: &mut Chance| {
            let rate = chance.pick(&[1_000_000, 8_000_000, 99_999_999]);
            Settings {
                rate_bps: Some(rate),
                credit_bytes: chance.pick(&[1514, 5000, 40_000]),
                peak_bps: (!chance.one_in(3)).then(|| rate * chance.pick(&[1, 2, 10])),
                ..Settings::default()
            }
        };
        compare(chance, settings);
    });
}

/// A queue's drain time after a change: its bits by the new rate.
#[test]
fn a_queue_is_empty_when_its_bits_have_left_by_the_new_rate() {
    for_all(|chance| {
        let (slow, fast) = (rates(chance), rates(chance));
        let mut line = Line::new(slow);
        let count = 1 + chance.below(100);
        (0..count).for_each(|_| line.carry(0, vec![0; 1514]));
        let now = chance.below(line.times()[count as usize - 1]);
        let waits = line.wire.queued(now);
        line.set(now, fast.clone());
        let rate = u128::from(fast.rate_bps.expect("one"));
        let drained = now + (u128::from(waits) * 8 * 1_000_000_000 / rate) as u64;
        let last = *line.times().last().expect("one");
        // `queued` is in whole bytes.
        let byte = (8 * 1_000_000_000 / rate) as u64;
        assert!(
            last.abs_diff(drained) <= byte + 2 * count + 2,
            "{last}, not {drained}"
        );
        // A part of a nanosecond for each frame, which is an eighth of a byte.
        assert!(line.wire.queued(now).abs_diff(waits) <= 2 + count / 8);
    });
}

/// What comes after a change finds the room that there is: bytes that wait are not more of them at a higher rate.
#[test]
fn what_comes_after_a_change_finds_the_room_that_there_is() {
    for_all(|chance| {
        let queue = chance.pick(&[20_000, 151_400]);
        let with_queue = |settings: Settings| Settings {
            queue_bytes: Some(queue),
            ..settings
        };
        let mut line = Line::new(with_queue(rates(chance)));
        for number in 0..400 {
            let now = number * chance.pick(&[0, 1, MS]);
            if chance.one_in(40) {
                line.set(now.max(400 * MS), with_queue(rates(chance)));
            }
            let now = now.max(400 * MS);
            let (waits, dropped) = (line.wire.queued(now), line.wire.counts().dropped);
            assert!(waits <= queue + 1);
            line.carry(now, vec![0; 1514]);
            let drops = line.wire.counts().dropped > dropped;
            assert_eq!(drops, waits + 1514 > queue);
        }
    });
}

/// A smaller queue keeps what waits, and so does a larger one: nothing arrives at another time.
#[test]
fn another_queue_changes_nothing_of_what_waits() {
    for_all(|chance| {
        let settings = any(chance);
        let mut line = Line::new(settings.clone());
        let frames = sent(chance, 1);
        let last = frames.last().map_or(1, |one| one.now);
        for Sent { now, frame, .. } in frames {
            line.carry(now, frame);
        }
        let (before, counts) = (line.arriving.clone(), line.wire.counts());
        let now = last + chance.below(30 * MS);
        line.set(
            now,
            Settings {
                queue_bytes: settings.queue_bytes.map(|bytes| bytes / 2),
                ..settings
            },
        );
        assert_eq!(line.arriving, before);
        assert_eq!(line.wire.counts(), counts);
    });
}

/// A frame has the delay of the moment in which it leaves, and waits for those that left before it.
#[test]
fn a_frame_has_the_delay_with_which_it_leaves_and_overtakes_none() {
    for_all(|chance| {
        let rate = rates(chance).rate_bps;
        let settings = |chance: &mut Chance| Settings {
            rate_bps: rate,
            delay_ns: chance.pick(&[1, MS, 5 * MS, 80 * MS]),
            ..Settings::default()
        };
        let mut line = Line::new(settings(chance));
        let mut delays = vec![(0, line.wire.settings().delay_ns)];
        let mut bare = Wire::new(Settings {
            rate_bps: rate,
            ..Settings::default()
        });
        let mut left = Vec::new();
        for event in events(chance, settings) {
            match event {
                Event::Comes(now, frame) => {
                    left.extend(bare.carry(now, frame.clone()).into_iter().flatten());
                    line.carry(now, frame);
                }
                Event::IsSet(now, settings) => {
                    delays.push((now, settings.delay_ns));
                    line.set(now, settings);
                }
            }
        }
        let mut last = 0;
        for (found, (left, _)) in line.times().into_iter().zip(left) {
            // What leaves in the moment of the change has left by what was.
            let of = delays.partition_point(|(since, _)| *since < left) - 1;
            last = last.max(left + delays[of].1);
            assert_eq!(found, last);
        }
    });
}

/// Whatever changes: each frame arrives, twice at the most, is lost or was dropped, and its bits are those that were sent.
#[test]
fn every_frame_arrives_or_is_counted_however_often_a_link_changes() {
    for_all(|chance| {
        let mut line = Line::new(any(chance));
        let (mut frames, mut twice, mut spoils) = (Vec::new(), false, false);
        for event in events(chance, any) {
            match event {
                Event::Comes(now, mut frame) => {
                    // So that each is known by its addresses.
                    frame[..4].copy_from_slice(&(frames.len() as u32).to_be_bytes());
                    frames.push(frame.clone());
                    line.carry(now, frame);
                }
                Event::IsSet(now, settings) => line.set(now, settings),
            }
            twice |= line.wire.settings().duplicate > 0;
            spoils |= line.wire.settings().corrupt > 0;
        }
        let counts = line.wire.counts();
        assert_eq!(counts.frames + counts.dropped, frames.len() as u64);
        let mut arrived = vec![0; frames.len()];
        for (_, frame) in line.arriving.values() {
            let number = u32::from_be_bytes(frame[..4].try_into().expect("four")) as usize;
            let pairs = frame.iter().zip(&frames[number]);
            let bits: u32 = pairs.map(|(one, other)| (one ^ other).count_ones()).sum();
            assert!(bits <= u32::from(spoils), "{bits} bits are others");
            arrived[number] += 1;
        }
        assert!(arrived.iter().all(|count| *count <= 1 + u32::from(twice)));
        let all = line.arriving.len() as u64 + counts.lost;
        assert!(all >= counts.frames && (all == counts.frames || twice));
    });
}

/// What waits in front of a link that is cut is lost, and what waits as it is whole again arrives.
#[test]
fn what_waits_as_a_link_is_cut_is_lost_unless_it_is_whole_again_in_time() {
    for_all(|chance| {
        let whole = Settings {
            seed: Some(chance.next()),
            ..rates(chance)
        };
        let cut = Settings {
            loss: ALL,
            ..whole.clone()
        };
        let mut line = Line::new(whole.clone());
        let count = 2 + chance.below(50);
        (0..count).for_each(|_| line.carry(0, vec![0; 1514]));
        let left = line.times();
        let (begins, ends) = (
            chance.below(left[0]),
            chance.below(left[count as usize - 1]),
        );
        line.set(begins.min(ends), cut);
        assert_eq!(
            line.wire.counts().lost,
            left.iter().filter(|at| **at > begins.min(ends)).count() as u64
        );
        line.set(ends.max(begins), whole);
        let lost = |at: &&u64| **at > begins.min(ends) && **at <= begins.max(ends);
        assert_eq!(
            line.wire.counts().lost,
            left.iter().filter(lost).count() as u64
        );
        let kept: Vec<u64> = left.iter().filter(|at| !lost(at)).copied().collect();
        assert_eq!(line.times(), kept);
    });
}

/// Settings are the same again and again, as of a schedule that says what holds: nothing is drawn anew for what waits.
#[test]
fn a_rate_that_changes_draws_nothing_anew_for_what_waits() {
    for_all(|chance| {
        let settings = Settings {
            loss: share(chance),
            duplicate: share(chance),
            corrupt: share(chance),
            jitter_ns: chance.pick(&[0, MS]),
            delay_ns: 10 * MS,
            seed: Some(chance.next()),
            ..rates(chance)
        };
        let mut line = Line::new(settings.clone());
        for Sent { frame, .. } in sent(chance, 0) {
            line.carry(0, frame);
        }
        let what = |line: &Line| -> Vec<(u64, Vec<u8>)> {
            let frames = line.arriving.iter();
            frames
                .map(|(number, one)| (*number, one.1.clone()))
                .collect()
        };
        let (before, counts) = (what(&line), line.wire.counts());
        let now = LEAST_NS + chance.below(40 * MS);
        line.set(
            now,
            Settings {
                rate_bps: rates(chance).rate_bps,
                ..settings
            },
        );
        assert_eq!(what(&line), before);
        assert_eq!(line.wire.counts(), counts);
    });
}

fn at(mbit: u64) -> Settings {
    Settings {
        rate_bps: Some(mbit * 1_000_000),
        queue_bytes: Some(400_000),
        delay_ns: MS,
        ..Settings::default()
    }
}

/// 200 frames of 1514 bytes at 1 Mbit/s, after half a second at 100: 500,000 bits have left, and the other 1,922,400 take
/// 19.224 ms. And back: after 5 ms at 100 Mbit/s the other 1,922,400 bits take 1.9224 s.
#[test]
fn two_hundred_frames_are_there_when_their_bits_are() {
    for (before, after, moment, last) in [(1, 100, 500, 520_224_000), (100, 1, 5, 1_928_400_000)] {
        let mut line = Line::new(at(before));
        (0..200).for_each(|_| line.carry(0, vec![0; 1514]));
        line.set(moment * MS, at(after));
        let found = *line.times().last().expect("all arrive");
        assert!(found.abs_diff(last) < 500, "{found}, not {last}");
        assert_eq!(line.wire.counts().dropped, 0);
    }
}

/// After 0.6 s the line is empty: nothing is dropped since what waited at 1 Mbit/s is counted at 100.
#[test]
fn what_comes_into_an_empty_line_is_not_dropped() {
    let mut line = Line::new(at(1));
    (0..100).for_each(|_| line.carry(0, vec![0; 1514]));
    line.set(500 * MS, at(100));
    (0..10).for_each(|_| line.carry(600 * MS, vec![0; 1514]));
    assert_eq!((line.times().len(), line.wire.counts().dropped), (110, 0));
    let first = line.times()[100];
    assert!(first.abs_diff(600 * MS + 121_120 + MS) < 10, "{first}");
}
