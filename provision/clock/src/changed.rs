//! What a change of a wire's settings does with the frames that have not left it yet.
//!
//! - The frame that is leaving has sent some of its bits. The others, and all frames behind it, leave by the new rate, credit
//!   and peak, from the moment of the change on. What is saved up of a credit stays, as far as the new one holds it.
//! - All of them are in the queue still, however small it has become; it takes no others until there is room, as Linux's do.
//! - How a frame goes on once it has left, by chance and by the delay, is decided by the settings with which it leaves. Where
//!   only rate and queue change, that is as it was decided when it came; else it is drawn anew, by the new random numbers.
//! - Frames that have left arrive as before. None that leaves later overtakes them, unless `jitter_overtakes` says so.
//! - A frame that a modelled processor hands over later comes to the new wire.

use std::collections::{HashMap, VecDeque};

use crate::variation::Correlated;
use crate::waiting::{Copy, Refused, Waiting};
use crate::wire::{turn_over, Chance, Leaving, Settings, Wire, LEAST_NS, NS_PER_S};

/// A copy of a frame that arrives, or arrives at another time than before: its number, when, and the frame.
pub type Moved = Vec<(u64, u64, Vec<u8>)>;

/// Bits are counted in parts of as many.
const BIT: i128 = NS_PER_S as i128;

impl Settings {
    /// What decides how a frame goes on once it has left, random numbers aside.
    fn of_the_line(&self) -> Settings {
        Settings {
            rate_bps: None,
            queue_bytes: None,
            credit_bytes: 0,
            excess_drops: 0,
            peak_bps: None,
            seed: None,
            queue_frames: None,
            trace: None,
            trace_runs: None,
            ..self.clone()
        }
    }

    fn leaves_as(&self, other: &Settings) -> bool {
        (self.rate_bps, self.credit_bytes, self.peak_bps, &self.trace)
            == (
                other.rate_bps,
                other.credit_bytes,
                other.peak_bps,
                &other.trace,
            )
    }

    fn only_the_queue_differs(&self, other: &Settings) -> bool {
        self.leaves_as(other) && self.of_the_line() == other.of_the_line()
    }
}

impl Wire {
    /// The number of the first copy whose arrival these settings may change at `now`; `set` wants its frame, and those of all
    /// that follow.
    pub fn first_changed(&self, now: u64, settings: &Settings) -> Option<u64> {
        let only_the_queue = self.settings.only_the_queue_differs(settings);
        let waiting = self.ledger.waiting.iter();
        waiting
            .filter(|one| one.left() > now && (one.came > now || !only_the_queue))
            .flat_map(|one| one.copies)
            .flatten()
            .map(|copy| copy.number)
            .next()
    }

    /// Replace the settings at `now`. Random numbers, bursts and slots begin anew, and so does the credit where no frame waits.
    ///
    /// `arriving` has the frames from `first_changed` on that are still on their way, by the numbers of their copies. Returns
    /// what arrives instead of them.
    pub fn set(
        &mut self,
        now: u64,
        settings: Settings,
        mut arriving: HashMap<u64, Vec<u8>>,
    ) -> Moved {
        let (mut waiting, refused) = self.ledger.take_after(now);
        let before = std::mem::replace(&mut self.settings, settings);
        self.chance = Chance(self.settings.seed.unwrap_or(0));
        self.correlated = Correlated::default();
        self.in_burst = false;
        self.slot_ends = 0;
        self.settled = now;
        let began = self.began;
        if before.trace != self.settings.trace {
            self.began = now;
        }
        let coming = waiting.split_off(waiting.partition_point(|one| one.came <= now));
        let only_the_queue = before.only_the_queue_differs(&self.settings);
        let first_changed = match only_the_queue {
            true => coming.front(),
            false => waiting.front().or(coming.front()),
        };
        if let Some(first) = first_changed {
            self.arrived_at = first.arrived_before;
        }
        self.begin_anew(now, (&before, began), waiting.front());
        let mut moved = Moved::new();
        if only_the_queue {
            self.stay(waiting);
        } else {
            self.leave_anew(now, &before, waiting, &mut arriving, &mut moved);
        }
        self.come_anew(coming, refused, &mut arriving, &mut moved);
        moved
    }

    /// The wire as it is in front of `first`, the frame that is leaving; without one, as if it had never sent anything.
    fn begin_anew(&mut self, now: u64, before: (&Settings, u64), first: Option<&Waiting>) {
        let Some(first) = first else {
            self.leaving.free_at = self.leaving.free_at.min(now);
            if self.settings.trace.is_none() {
                self.leaving.reached = self.leaving.free_at;
            } else if before.0.trace != self.settings.trace {
                self.leaving.reached = 0;
            }
            return;
        };
        self.leaving = if before.0.leaves_as(&self.settings) {
            first.leaving
        } else {
            self.rest_of(now, before, first)
        };
    }

    /// The wire once the frame has left that was leaving at `now`, by the settings before, whose trace had begun at a moment.
    fn rest_of(&self, now: u64, (before, began): (&Settings, u64), first: &Waiting) -> Leaving {
        let whole = i128::from(first.bytes) * 8 * BIT;
        let ns = |moment: u64| i128::from(moment) - i128::from(now);
        let (saved, unsent) = match (before.rate_bps, &before.trace_runs) {
            (None, None) => (0, whole),
            (None, Some(trace)) => {
                let passed = trace.passed(now.saturating_sub(began));
                let left = first.leaving.reached.saturating_sub(passed);
                let bits = (i128::from(left) * 8 * BIT).min(whole);
                (-bits, bits)
            }
            (Some(rate), _) => {
                let credit = i128::from(before.credit_bytes) * 8 * BIT;
                // Negative as long as the frame may not leave.
                let saved = credit - ns(first.leaving.reached).max(0).saturating_mul(rate.into());
                let unsent = match before.peak_bps {
                    Some(peak) => ns(first.leaving.by_peak).max(0).saturating_mul(peak.into()),
                    None => credit.saturating_add((-saved).max(0)),
                };
                (saved, unsent.min(whole))
            }
        };
        if let Some(trace) = &self.settings.trace_runs {
            let bytes = unsent.unsigned_abs().div_ceil(8 * NS_PER_S) as u64;
            let cost = match bytes < first.bytes {
                true => bytes.clamp(1, trace.cost(first.bytes)),
                false => trace.cost(first.bytes),
            };
            return self.by_trace(trace, trace.passed(now - self.began) + cost);
        }
        let Some(rate) = self.settings.rate_bps else {
            return Leaving {
                free_at: now,
                reached: now,
                by_peak: now,
            };
        };
        let credit = i128::from(self.settings.credit_bytes) * 8 * BIT;
        let reached = after(now, credit - saved.min(credit), rate);
        let by_peak = self
            .settings
            .peak_bps
            .map_or(now, |peak| after(now, unsent, peak));
        Leaving {
            free_at: reached
                .saturating_sub(self.credit_ns())
                .max(by_peak)
                .max(now),
            reached,
            by_peak,
        }
    }

    /// The frames that have come leave as before.
    fn stay(&mut self, waiting: VecDeque<Waiting>) {
        for one in waiting {
            self.leaving = one.leaving;
            self.ledger.enter(one);
        }
    }

    /// The frames that have come leave by the new settings, and arrive by them.
    fn leave_anew(
        &mut self,
        now: u64,
        before: &Settings,
        waiting: VecDeque<Waiting>,
        arriving: &mut HashMap<u64, Vec<u8>>,
        moved: &mut Moved,
    ) {
        let leaves_as_before = before.leaves_as(&self.settings);
        let line_is_the_same = before.of_the_line() == self.settings.of_the_line();
        for (index, mut one) in waiting.into_iter().enumerate() {
            if leaves_as_before {
                self.leaving = one.leaving;
            } else if index > 0 {
                self.leaving = self.leave(self.leaving, one.came, one.bytes);
            }
            one.leaving = self.leaving;
            let earliest = now + LEAST_NS;
            if !line_is_the_same {
                self.go_on_anew(&mut one, earliest, arriving, moved);
            } else {
                one.arrived_before = self.arrived_at;
                for Copy {
                    number, delay_ns, ..
                } in one.copies.into_iter().flatten()
                {
                    let time = self.arrival(one.left(), delay_ns).max(earliest);
                    if let Some(frame) = arriving.remove(&number) {
                        moved.push((number, time, frame));
                    }
                }
            }
            self.ledger.enter(one);
        }
    }

    /// Draw anew how a frame goes on once it has left.
    fn go_on_anew(
        &mut self,
        one: &mut Waiting,
        earliest: u64,
        arriving: &mut HashMap<u64, Vec<u8>>,
        moved: &mut Moved,
    ) {
        one.arrived_before = self.arrived_at;
        let Some(frame) = original(one, arriving) else {
            one.copies = [None, None];
            return;
        };
        self.counts.lost -= one.lost;
        let mut number = self.numbered;
        let put = self.put_on_the_line(one.left(), earliest, frame);
        for (time, frame) in put.arrivals.into_iter().flatten() {
            number += 1;
            moved.push((number, time, frame));
        }
        one.copies = put.copies;
        one.lost = put.lost;
        one.kept = put.kept;
    }

    /// Frames that a modelled processor hands over in later moments come to the wire as it is now.
    fn come_anew(
        &mut self,
        coming: VecDeque<Waiting>,
        refused: VecDeque<Refused>,
        arriving: &mut HashMap<u64, Vec<u8>>,
        moved: &mut Moved,
    ) {
        let mut refused = refused.into_iter().peekable();
        for mut one in coming {
            while let Some(other) = refused.next_if(|other| other.came < one.came) {
                self.counts.dropped -= 1;
                self.come(other.came, other.frame, moved);
            }
            match original(&mut one, arriving) {
                Some(frame) => {
                    self.counts.frames -= 1;
                    self.counts.bytes -= one.bytes;
                    self.counts.lost -= one.lost;
                    self.come(one.came, frame, moved);
                }
                None => {
                    self.leaving = self.leave(self.leaving, one.came, one.bytes);
                    one.leaving = self.leaving;
                    one.arrived_before = self.arrived_at;
                    one.copies = [None, None];
                    self.ledger.enter(one);
                }
            }
        }
        for other in refused {
            self.counts.dropped -= 1;
            self.come(other.came, other.frame, moved);
        }
    }

    fn come(&mut self, came: u64, frame: Vec<u8>, moved: &mut Moved) {
        let mut number = self.numbered;
        for (time, frame) in self.carry(came, frame).into_iter().flatten() {
            number += 1;
            moved.push((number, time, frame));
        }
    }
}

/// The frame as it came; None if it is nowhere any more.
fn original(one: &mut Waiting, arriving: &mut HashMap<u64, Vec<u8>>) -> Option<Vec<u8>> {
    let mut found = one.kept.take();
    for Copy {
        number, flipped, ..
    } in one.copies.into_iter().flatten()
    {
        if let Some(mut frame) = arriving.remove(&number) {
            if let Some(bit) = flipped {
                turn_over(&mut frame, bit);
            }
            found = Some(frame);
        }
    }
    found
}

/// When so many parts of bits have been sent at a rate, from `now` on.
fn after(now: u64, parts: i128, rate_bps: u64) -> u64 {
    let ns = parts.max(0).unsigned_abs().div_ceil(u128::from(rate_bps));
    now.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
}
