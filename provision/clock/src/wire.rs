//! One direction of a link: what it does to the frames sent into it, to the nanosecond.

use serde::{Deserialize, Serialize};

use crate::trace::Trace;
use crate::variation::{self, at_share, quantiles, Correlated};
use crate::waiting::{Copy, Ledger, Waiting};

/// A share of all frames.
const ALL: u64 = 1 << 32;
/// The least time that a frame takes, in nanoseconds. So none arrives in the moment in which it was sent.
pub const LEAST_NS: u64 = 1;
pub(crate) const NS_PER_S: u128 = 1_000_000_000;
/// The shortest frame, in bytes: an Ethernet header.
pub const SHORTEST_FRAME: u64 = 14;
/// An IEEE 802.1Q tag, in bytes.
const TAG: u64 = 4;
/// How many bytes at a frame's beginning are never corrupted: with wrong addresses a frame would go nowhere, instead of arriving
/// spoilt.
const HEADER: usize = 14;

/// What one direction of a link does to frames. Shares of frames are in units of 1/2^32.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// In bits per second; None: frames leave at once.
    pub rate_bps: Option<u64>,
    /// How many bytes may wait for the rate; None: any number.
    pub queue_bytes: Option<u64>,
    /// How many bytes may leave at once beyond the rate: what an idle link saves up.
    #[serde(default)]
    pub credit_bytes: u64,
    /// Whether frames beyond rate and credit are dropped, as by a policer (1), and do not wait (0).
    #[serde(default)]
    pub excess_drops: u64,
    /// The highest rate, at which credit leaves, in bits per second; None: credit leaves at once.
    #[serde(default)]
    pub peak_bps: Option<u64>,
    pub delay_ns: u64,
    /// How far a frame's delay varies: of a uniform distribution at the most, shorter or longer, each being as likely; of others
    /// in the mean, as the standard deviation.
    pub jitter_ns: u64,
    /// The number of the distribution (variation.rs).
    #[serde(default)]
    pub jitter_distribution: u64,
    /// The quantiles of the distribution `table` (variation.rs), with the mean 0 and the standard deviation of 1; empty for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jitter_table: Vec<i64>,
    /// How much a frame's delay is like that of the one before.
    #[serde(default)]
    pub jitter_correlation: u64,
    /// Whether a frame may arrive before one that was sent earlier and varied to arrive later (1), or waits for it (0).
    #[serde(default)]
    pub jitter_overtakes: u64,
    /// The share of frames that is lost, each on its own. It counts only where there are no bursts.
    pub loss: u64,
    /// Of the random numbers; None: 0.
    pub seed: Option<u64>,
    /// Bursts, in which all frames are lost, after Gilbert (1960): the share of frames with which one begins.
    pub burst_begins: u64,
    /// The share of frames in a burst with which it ends; 0: there are no bursts.
    pub burst_ends: u64,
    /// The share of frames in a burst that is not lost (Elliott, 1963).
    #[serde(default)]
    pub burst_spares: u64,
    /// The share of frames between two bursts that is lost.
    #[serde(default)]
    pub between_bursts: u64,
    /// The share of frames that has no delay, and so overtakes others.
    pub reorder: u64,
    /// The share of frames that is sent twice. Each of the two is then lost, delayed and corrupted on its own.
    pub duplicate: u64,
    /// The share of frames in which one bit is turned over.
    pub corrupt: u64,
    /// The length of a slot: frames that would arrive within it arrive together at its end; 0: each arrives when it comes.
    pub slot_ns: u64,
    /// The largest IP packet that arrives, in bytes; None: any. Larger ones are lost, and nobody is told.
    #[serde(default)]
    pub hole_bytes: Option<u64>,
    /// How many frames may wait, the one that is leaving included; None: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_frames: Option<u64>,
    /// The name of the trace that is played in place of a rate. It begins as the wire gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The trace itself, which is told and not shown.
    #[serde(default, skip_serializing)]
    pub trace_runs: Option<Trace>,
    /// 1: the card that sends into the wire has no carrier, and its kernel sends nothing; 0: it has one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub no_carrier: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The longest delay, jitter and slot, in nanoseconds: some 31 years. With less, no sum of times overflows.
const LONGEST_NS: u64 = 1_000_000_000 * 1_000_000_000;

impl Settings {
    /// An error that says why no wire can have these settings.
    pub fn check(&self) -> Result<(), String> {
        let Settings {
            rate_bps,
            delay_ns,
            jitter_ns,
            slot_ns,
            ..
        } = self;
        if self.trace.is_some() != self.trace_runs.is_some() {
            return Err("a trace has a name and its runs".into());
        }
        let paid = self.credit_bytes > 0 || self.peak_bps.is_some() || self.excess_drops > 0;
        if self.trace.is_some() && (rate_bps.is_some() || paid) {
            return Err("a trace is there in place of a rate".into());
        }
        if *rate_bps == Some(0) {
            return Err("a rate of 0 bit/s lets nothing leave".into());
        }
        if self.jitter_distribution >= variation::DISTRIBUTIONS.len() as u64 {
            return Err(format!("{} is no distribution", self.jitter_distribution));
        }
        if self.jitter_distribution == variation::OWN {
            variation::check_own(&self.jitter_table)?;
        }
        if self.peak_bps.is_some() && self.peak_bps < rate_bps.or(Some(u64::MAX)) {
            return Err("a peak is not below the rate that it has".into());
        }
        if self.jitter_correlation > ALL {
            return Err("a correlation is at most 1".into());
        }
        match [delay_ns, jitter_ns, slot_ns].into_iter().max() {
            Some(longest) if *longest > LONGEST_NS => Err(format!("{longest} ns is too long")),
            _ => Ok(()),
        }
    }
}

/// What arrives of one frame, and when: the frame, and its duplicate.
pub type Arrivals = [Option<(u64, Vec<u8>)>; 2];

/// What has become of the frames that were sent into a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// How many have left, lost ones included.
    pub frames: u64,
    /// How many bytes these had.
    pub bytes: u64,
    /// How many found the queue full.
    pub dropped: u64,
    /// How many found no room at the host at either end, or too many others under way.
    pub overrun: u64,
    /// How many were lost by chance, by their size, or since the link was cut.
    pub lost: u64,
}

/// When a wire is free for its next frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaving {
    /// When the last frame that it has taken will have left.
    pub free_at: u64,
    /// When its credit will be whole again. Without any, that is `free_at`. Of a trace, how many bytes of its opportunities are
    /// used or lost then.
    pub reached: u64,
    /// When that frame would have left by the peak alone.
    pub by_peak: u64,
}

pub struct Wire {
    pub(crate) settings: Settings,
    pub(crate) counts: Counts,
    pub(crate) chance: Chance,
    pub(crate) leaving: Leaving,
    /// When its trace has begun.
    pub(crate) began: u64,
    /// The frames that have not left yet, and perhaps some more.
    pub(crate) ledger: Ledger,
    /// Before that moment its settings do not change, so that nothing needs to be remembered for a change there.
    pub(crate) settled: u64,
    pub(crate) correlated: Correlated,
    /// When the last frame arrives of those whose order is kept.
    pub(crate) arrived_at: u64,
    pub(crate) in_burst: bool,
    /// When the last slot ends.
    pub(crate) slot_ends: u64,
    /// How many copies of frames have been put on the line that arrive.
    pub(crate) numbered: u64,
}

/// A frame that has been put on the line: what arrives of it, and what is remembered until it has left.
pub(crate) struct Put {
    pub arrivals: Arrivals,
    pub copies: [Option<Copy>; 2],
    pub lost: u64,
    /// The frame, if all of its copies are lost.
    pub kept: Option<Vec<u8>>,
}

impl Wire {
    pub fn new(settings: Settings) -> Wire {
        let chance = Chance(settings.seed.unwrap_or(0));
        Wire {
            settings,
            counts: Counts::default(),
            chance,
            leaving: Leaving::default(),
            began: 0,
            ledger: Ledger::default(),
            settled: 0,
            correlated: Correlated::default(),
            arrived_at: 0,
            in_burst: false,
            slot_ends: 0,
            numbered: 0,
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What its random numbers have come to: another number after each that was drawn.
    pub fn drawn(&self) -> u64 {
        self.chance.0
    }

    /// How many copies of its frames arrive, so far: the number of the last one. They have their numbers in the order of
    /// `Arrivals`.
    pub fn numbered(&self) -> u64 {
        self.numbered
    }

    /// From now on its settings do not change before that moment.
    pub fn settle(&mut self, until: u64) {
        self.settled = until;
    }

    /// How many bytes wait at `now` until the rate lets them leave. With a peak, whose frames leave at two rates, and with a trace
    /// that counts whole frames.
    pub fn queued(&self, now: u64) -> u64 {
        if self.settings.peak_bps.is_some() || self.settings.trace.is_some() {
            return self.ledger.bytes_after(now);
        }
        let waits = u128::from(self.leaving.free_at.saturating_sub(now));
        (waits * u128::from(self.settings.rate_bps.unwrap_or(0)) / 8 / NS_PER_S) as u64
    }

    fn counts_whole_frames(&self) -> bool {
        let Settings {
            peak_bps,
            trace,
            queue_frames,
            ..
        } = &self.settings;
        peak_bps.is_some() || trace.is_some() || queue_frames.is_some()
    }

    /// The least time that any frame takes.
    pub fn least_ns(&self) -> u64 {
        let delay_ns = if self.settings.reorder > 0 {
            0
        } else {
            self.delay_by(0)
        };
        let transmission_ns = self.transmission_ns(SHORTEST_FRAME);
        let beyond_credit_ns = transmission_ns.saturating_sub(self.credit_ns());
        (delay_ns + beyond_credit_ns.max(self.at_peak_ns(SHORTEST_FRAME))).max(LEAST_NS)
    }

    /// The longest time from when a frame has left until it arrives.
    pub fn longest_ns(&self) -> u64 {
        self.delay_by(ALL - 1).saturating_add(self.settings.slot_ns)
    }

    /// Send a frame at `now`. Returns what of it arrives at the other end.
    pub fn carry(&mut self, now: u64, frame: Vec<u8>) -> Arrivals {
        let bytes = frame.len() as u64;
        let leaving = self.leave(self.leaving, now, bytes);
        if !self.fits(leaving.free_at, now, bytes) {
            self.counts.dropped += 1;
            if now >= self.settled {
                self.ledger.refuse(now, frame);
            }
            return [None, None];
        }
        self.leaving = leaving;
        self.counts.frames += 1;
        self.counts.bytes += bytes;
        let arrived_before = self.arrived_at;
        let put = self.put_on_the_line(leaving.free_at, now + LEAST_NS, frame);
        self.ledger.settle(self.settled.min(now));
        if leaving.free_at >= self.settled || self.counts_whole_frames() {
            self.ledger.enter(Waiting {
                came: now,
                bytes,
                leaving,
                arrived_before,
                taken: 0,
                frames: 1,
                nth: 0,
                copies: put.copies,
                lost: put.lost,
                kept: put.kept,
            });
        }
        put.arrivals
    }

    /// The next frame, which comes at `came`: how the wire is once it has left. `from`: how it is before.
    pub(crate) fn leave(&self, from: Leaving, came: u64, bytes: u64) -> Leaving {
        if let Some(trace) = &self.settings.trace_runs {
            let passed = trace.passed(came.saturating_sub(self.began));
            return self.by_trace(trace, from.reached.max(passed) + trace.cost(bytes));
        }
        let whole_at = from.reached.max(came) + self.transmission_ns(bytes);
        let by_peak = from.free_at.max(came) + self.at_peak_ns(bytes);
        Leaving {
            free_at: whole_at.saturating_sub(self.credit_ns()).max(by_peak),
            reached: whole_at,
            by_peak,
        }
    }

    /// The wire once that many bytes of its trace are used.
    pub(crate) fn by_trace(&self, trace: &Trace, reached: u64) -> Leaving {
        let left = self.began.saturating_add(trace.moment_of(reached));
        Leaving {
            free_at: left,
            reached,
            by_peak: left,
        }
    }

    /// Whether there is room for a frame at `now` that would have left at `left`.
    fn fits(&self, left: u64, now: u64, bytes: u64) -> bool {
        let most = self.settings.queue_frames;
        if most.is_some_and(|most| self.ledger.frames_after(now) >= most) {
            return false;
        }
        match self.settings.queue_bytes {
            _ if self.settings.excess_drops != 0 => left == now,
            Some(queue) => self.queued(now) + bytes <= queue,
            None => true,
        }
    }

    /// Let a frame that leaves at `left` go on its way. It arrives at `earliest` or later.
    ///
    /// ARP is exempt from all that is random, unless the link is cut. A lost request would cost a second, and would take random
    /// numbers that others have otherwise.
    pub(crate) fn put_on_the_line(&mut self, left: u64, earliest: u64, frame: Vec<u8>) -> Put {
        let mut put = Put {
            arrivals: [None, None],
            copies: [None, None],
            lost: 0,
            kept: None,
        };
        if is_arp(&frame) && self.settings.loss < ALL {
            let delay_ns = Some(self.next_delay_ns());
            self.arrives(&mut put, 0, (left, earliest), delay_ns, (frame, None));
            return put;
        }
        let copy = self
            .chance
            .happens(self.settings.duplicate)
            .then(|| frame.clone());
        for (index, each) in [Some(frame), copy].into_iter().enumerate() {
            let Some(each) = each else { continue };
            match self.survivor(each) {
                Ok(survivor) => {
                    let overtakes = self.chance.happens(self.settings.reorder);
                    let delay_ns = (!overtakes).then(|| self.next_delay_ns());
                    self.arrives(&mut put, index, (left, earliest), delay_ns, survivor);
                }
                Err(frame) => {
                    put.lost += 1;
                    put.kept = Some(frame);
                }
            }
        }
        if put.copies != [None, None] {
            put.kept = None;
        }
        put
    }

    /// One copy of a frame arrives.
    fn arrives(
        &mut self,
        put: &mut Put,
        index: usize,
        (left, earliest): (u64, u64),
        delay_ns: Option<u64>,
        (frame, flipped): (Vec<u8>, Option<usize>),
    ) {
        self.numbered += 1;
        put.copies[index] = Some(Copy {
            number: self.numbered,
            delay_ns,
            flipped,
        });
        put.arrivals[index] = Some((self.arrival(left, delay_ns).max(earliest), frame));
    }

    /// When something arrives that has left at `left`, and is under way for so long, slots and the order of frames aside; None:
    /// for no time, and it overtakes others.
    pub(crate) fn arrival(&mut self, left: u64, delay_ns: Option<u64>) -> u64 {
        let Some(delay_ns) = delay_ns else {
            return self.slot(left);
        };
        let mut time = left + delay_ns;
        if self.settings.jitter_overtakes == 0 {
            time = time.max(self.arrived_at);
        }
        time = self.slot(time);
        self.arrived_at = self.arrived_at.max(time);
        time
    }

    /// The frame, or what is left of it, and which of its bits is turned over. The frame as an error if it is lost.
    fn survivor(&mut self, mut frame: Vec<u8>) -> Result<(Vec<u8>, Option<usize>), Vec<u8>> {
        if self.loses() || self.is_too_large(&frame) {
            self.counts.lost += 1;
            return Err(frame);
        }
        let mut flipped = None;
        if frame.len() > HEADER && self.chance.happens(self.settings.corrupt) {
            let bit = self.chance.below(8 * (frame.len() - HEADER) as u64) as usize;
            turn_over(&mut frame, bit);
            flipped = Some(bit);
        }
        Ok((frame, flipped))
    }

    fn loses(&mut self) -> bool {
        let Settings {
            loss,
            burst_begins,
            burst_ends,
            ..
        } = self.settings;
        if burst_ends == 0 {
            return self.chance.happens(loss);
        }
        let in_burst = self.in_burst;
        if self
            .chance
            .happens(if in_burst { burst_ends } else { burst_begins })
        {
            self.in_burst = !in_burst;
        }
        if in_burst {
            !self.chance.happens(self.settings.burst_spares)
        } else {
            self.chance.happens(self.settings.between_bursts)
        }
    }

    fn is_too_large(&self, frame: &[u8]) -> bool {
        let header = SHORTEST_FRAME + if is_tagged(frame) { TAG } else { 0 };
        let hole = self.settings.hole_bytes;
        hole.is_some_and(|most| frame.len() as u64 > most.saturating_add(header))
    }

    /// When a frame arrives that would arrive at `time` without slots.
    fn slot(&mut self, time: u64) -> u64 {
        if self.settings.slot_ns == 0 {
            return time;
        }
        if time > self.slot_ends {
            self.slot_ends = time + self.settings.slot_ns;
        }
        self.slot_ends
    }

    /// Count a frame that found no room at the host at either end, or on its way.
    pub fn drop_at_end(&mut self) {
        self.counts.overrun += 1;
    }

    /// The last frame's copy with that number found no room on its way.
    pub fn forget(&mut self, number: u64) {
        self.drop_at_end();
        self.ledger.forget(number);
    }

    fn transmission_ns(&self, bytes: u64) -> u64 {
        self.settings.rate_bps.map_or(0, |rate| ns_at(rate, bytes))
    }

    /// The least time that a frame takes to leave, however much credit there is.
    pub(crate) fn at_peak_ns(&self, bytes: u64) -> u64 {
        self.settings.peak_bps.map_or(0, |peak| ns_at(peak, bytes))
    }

    /// How much sooner than at its rate the link may let a frame leave, by its whole credit.
    pub(crate) fn credit_ns(&self) -> u64 {
        match self.settings.rate_bps {
            Some(rate) => {
                let ns = u128::from(self.settings.credit_bytes) * 8 * NS_PER_S / u128::from(rate);
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
            None => 0,
        }
    }

    /// The next frame's delay.
    fn next_delay_ns(&mut self) -> u64 {
        if self.settings.jitter_ns == 0 {
            return self.settings.delay_ns;
        }
        self.varied_delay_ns()
    }

    /// The next frame's delay, jitter included.
    fn varied_delay_ns(&mut self) -> u64 {
        let Settings {
            delay_ns,
            jitter_ns,
            jitter_distribution,
            jitter_correlation,
            ..
        } = self.settings;
        if jitter_distribution == 0 && jitter_correlation == 0 {
            return (delay_ns + self.chance.below(2 * jitter_ns + 1)).saturating_sub(jitter_ns);
        }
        let share = self.chance.below(ALL);
        let share = self.correlated.next(share, jitter_correlation);
        self.delay_by(share)
    }

    /// The delay below which a share of all frames is: from 0 to the last below 2^32.
    fn delay_by(&self, share: u64) -> u64 {
        let (delay_ns, jitter_ns) = (self.settings.delay_ns, u128::from(self.settings.jitter_ns));
        let table = match self.settings.jitter_distribution {
            variation::OWN => Some(self.settings.jitter_table.as_slice()),
            other => quantiles(other),
        };
        let Some(table) = table else {
            let more = ((2 * jitter_ns + 1) * u128::from(share)) >> 32;
            return (delay_ns + more as u64).saturating_sub(jitter_ns as u64);
        };
        let quantile = i128::from(at_share(table, share));
        let more = (quantile * jitter_ns as i128).div_euclid(i128::from(variation::SD));
        (i128::from(delay_ns) + more).clamp(0, i128::from(2 * LONGEST_NS)) as u64
    }
}

/// How long so many bytes take at a rate.
fn ns_at(rate_bps: u64, bytes: u64) -> u64 {
    (u128::from(bytes) * 8 * NS_PER_S).div_ceil(u128::from(rate_bps)) as u64
}

/// Turn one bit behind a frame's addresses over, by its number there.
pub(crate) fn turn_over(frame: &mut [u8], bit: usize) {
    frame[HEADER + bit / 8] ^= 1 << (bit % 8);
}

/// Whether a frame is ARP, with a VLAN tag (IEEE 802.1Q) or without.
fn is_arp(frame: &[u8]) -> bool {
    let at = if is_tagged(frame) { 16 } else { 12 };
    frame.get(at..at + 2) == Some(&[0x08, 0x06])
}

fn is_tagged(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[0x81, 0x00])
}

/// A number that follows from two others, and is never 0.
pub fn number_of(seed: u64, number: u64) -> u64 {
    Chance(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95))
        .next()
        .max(1)
}

/// Random numbers by SplitMix64 (Steele, Lea and Flood 2014): small, and the same on every machine.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// True with a probability of `share` / 2^32. A share of 0 takes no random number.
    fn happens(&mut self, share: u64) -> bool {
        share > 0 && self.below(ALL) < share
    }

    /// A number from 0 to `bound` - 1.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Settings {
        Settings {
            delay_ns: 5_000_000,
            ..Settings::default()
        }
    }

    /// When a frame of so many bytes arrives, of a wire that sends nothing twice.
    fn arrival(wire: &mut Wire, now: u64, bytes: usize) -> Option<u64> {
        of(wire, now, &vec![0; bytes])
    }

    fn of(wire: &mut Wire, now: u64, frame: &[u8]) -> Option<u64> {
        let [first, second] = wire.carry(now, frame.to_vec());
        assert!(second.is_none());
        first.map(|(time, _)| time)
    }

    /// A byte takes 1 us, and 0.1 us while there is credit for it.
    fn peaked() -> Settings {
        Settings {
            rate_bps: Some(8_000_000),
            credit_bytes: 10_000,
            peak_bps: Some(80_000_000),
            queue_bytes: Some(20_000),
            ..Settings::default()
        }
    }

    #[test]
    fn credit_leaves_at_the_peak_and_then_the_rate_holds() {
        let mut wire = Wire::new(peaked());
        let left: Vec<u64> = (0..14)
            .map(|_| arrival(&mut wire, 0, 1000).unwrap() / 1000)
            .collect();
        // The credit, and what the rate gives meanwhile: 11 frames in 1.1 ms.
        let at_peak = (1..12).map(|each| each * 100);
        assert_eq!(left, at_peak.chain([2000, 3000, 4000]).collect::<Vec<_>>());
        assert_eq!(wire.queued(0), 14_000);
        assert_eq!(wire.queued(1_100_000), 3000);
        assert_eq!(wire.queued(4_000_000), 0);
        // The credit is whole again when all has been sent at the rate.
        assert_eq!(arrival(&mut wire, 14_000_000, 1000), Some(14_100_000));
        assert_eq!(wire.least_ns(), 1400);
    }

    #[test]
    fn a_queue_in_front_of_a_peak_holds_its_bytes() {
        let mut wire = Wire::new(peaked());
        let taken = (0..30).filter_map(|_| arrival(&mut wire, 0, 1000)).count();
        assert_eq!((taken, wire.counts().dropped), (20, 10));
        assert!(arrival(&mut wire, 100_000, 1000).is_some());
        assert!(arrival(&mut wire, 100_000, 1000).is_none());
    }

    #[test]
    fn a_peak_below_its_rate_and_a_table_without_quantiles_are_refused() {
        peaked().check().unwrap();
        let slower = Settings {
            peak_bps: Some(7_999_999),
            ..peaked()
        };
        let alone = Settings {
            rate_bps: None,
            ..peaked()
        };
        let untold = Settings {
            jitter_distribution: variation::OWN,
            ..plain()
        };
        for wrong in [slower, alone, untold] {
            assert!(wrong.check().is_err());
        }
    }

    #[test]
    fn an_own_table_has_its_delays_and_no_others() {
        let mut wire = Wire::new(Settings {
            jitter_ns: 1 << 16,
            jitter_distribution: variation::OWN,
            jitter_table: vec![-20_000, 0, 20_000],
            jitter_overtakes: 1,
            seed: Some(1),
            ..plain()
        });
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..3000 {
            *counts
                .entry(arrival(&mut wire, 0, 60).unwrap())
                .or_insert(0) += 1;
        }
        let delays: Vec<u64> = counts.keys().copied().collect();
        assert_eq!(delays, [4_980_000, 5_000_000, 5_020_000]);
        // Five standard errors.
        assert!(counts
            .values()
            .all(|count: &i32| (count - 1000).abs() < 130));
        assert_eq!((wire.least_ns(), wire.longest_ns()), (4_980_000, 5_020_000));
    }

    #[test]
    fn a_delay_is_kept_to_the_nanosecond() {
        assert_eq!(arrival(&mut Wire::new(plain()), 17, 98), Some(5_000_017));
    }

    #[test]
    fn frames_leave_one_after_the_other() {
        let mut wire = Wire::new(Settings {
            rate_bps: Some(8_000_000),
            queue_bytes: Some(5000),
            ..plain()
        });
        assert_eq!(arrival(&mut wire, 0, 1000), Some(6_000_000));
        assert_eq!(arrival(&mut wire, 0, 1000), Some(7_000_000));
        assert_eq!(arrival(&mut wire, 500_000, 1000), Some(8_000_000));
    }

    #[test]
    fn what_waits_becomes_less_as_it_leaves() {
        let mut wire = Wire::new(Settings {
            rate_bps: Some(8_000_000),
            queue_bytes: Some(10_000),
            ..plain()
        });
        assert_eq!(wire.queued(0), 0);
        (0..3).for_each(|_| assert!(arrival(&mut wire, 0, 1000).is_some()));
        assert_eq!(
            [0, 500_000, 3_000_000, 9_000_000].map(|at| wire.queued(at)),
            [3000, 2500, 0, 0]
        );
    }

    #[test]
    fn a_full_queue_drops() {
        let mut wire = Wire::new(Settings {
            rate_bps: Some(8_000_000),
            queue_bytes: Some(2000),
            ..plain()
        });
        assert!(arrival(&mut wire, 0, 1000).is_some());
        assert!(arrival(&mut wire, 0, 1000).is_some());
        assert_eq!(arrival(&mut wire, 0, 1000), None);
        assert_eq!(wire.counts().dropped, 1);
        assert!(arrival(&mut wire, 1_000_000, 1000).is_some());
    }

    #[test]
    fn losses_come_with_their_share_and_again() {
        let some = Settings {
            loss: ALL / 10,
            seed: Some(7),
            ..plain()
        };
        let lost = || {
            let mut wire = Wire::new(some.clone());
            (0..10_000)
                .filter(|&at| arrival(&mut wire, at, 98).is_none())
                .collect::<Vec<u64>>()
        };
        assert_eq!(lost(), lost());
        assert!((900..1100).contains(&lost().len()));
        let mut cut = Wire::new(Settings {
            loss: ALL,
            ..plain()
        });
        assert!((0..1000).all(|at| arrival(&mut cut, at, 98).is_none()));
    }

    #[test]
    fn arp_is_lost_on_a_cut_link_alone() {
        let mut arp = [0; 60];
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        let mut lossy = Wire::new(Settings {
            loss: ALL - 1,
            seed: Some(3),
            ..plain()
        });
        assert!((0..100).all(|at| of(&mut lossy, at, &arp).is_some()));
        assert_eq!(
            of(
                &mut Wire::new(Settings {
                    loss: ALL,
                    ..plain()
                }),
                0,
                &arp
            ),
            None
        );
    }

    #[test]
    fn jitter_stays_within() {
        let mut wire = Wire::new(Settings {
            jitter_ns: 1_000_000,
            jitter_overtakes: 1,
            seed: Some(1),
            ..plain()
        });
        let delays: Vec<u64> = (0..1000)
            .map(|at| arrival(&mut wire, at * 100_000, 98).unwrap() - at * 100_000)
            .collect();
        assert!(delays
            .iter()
            .all(|delay| (4_000_000..=6_000_000).contains(delay)));
        assert!(delays.iter().max() > Some(&5_900_000) && delays.iter().min() < Some(&4_100_000));
        assert!(wire.least_ns() >= 4_000_000);
    }

    #[test]
    fn bursts_have_their_share_and_their_length() {
        // A tenth, eight frames at a time.
        let (begins, ends) = (ALL / 72, ALL / 8);
        let some = Settings {
            loss: ALL / 10,
            burst_begins: begins,
            burst_ends: ends,
            seed: Some(7),
            ..plain()
        };
        let mut wire = Wire::new(some);
        let lost: Vec<bool> = (0..400_000)
            .map(|at| arrival(&mut wire, at, 98).is_none())
            .collect();
        let all = lost.iter().filter(|&&each| each).count() as f64;
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        assert!((0.095..0.105).contains(&(all / lost.len() as f64)), "{all}");
        assert!((7.6..8.4).contains(&(all / bursts)), "{}", all / bursts);
        assert_eq!(wire.counts().lost, all as u64);
    }

    #[test]
    fn some_frames_take_no_delay_and_overtake() {
        let mut wire = Wire::new(Settings {
            reorder: ALL / 4,
            seed: Some(5),
            ..plain()
        });
        let delays: Vec<u64> = (0..10_000)
            .map(|at| arrival(&mut wire, at * 1000, 98).unwrap() - at * 1000)
            .collect();
        let ahead = delays.iter().filter(|&&delay| delay == LEAST_NS).count();
        assert!((2300..2700).contains(&ahead), "{ahead}");
        assert_eq!(
            delays.iter().filter(|&&delay| delay == 5_000_000).count(),
            delays.len() - ahead
        );
        assert_eq!(wire.least_ns(), LEAST_NS);
    }

    #[test]
    fn some_frames_arrive_twice_and_each_may_be_lost() {
        let mut wire = Wire::new(Settings {
            duplicate: ALL / 10,
            loss: ALL / 2,
            seed: Some(5),
            ..plain()
        });
        let arrived: Vec<usize> = (0..20_000)
            .map(|at| wire.carry(at, vec![0; 98]).iter().flatten().count())
            .collect();
        assert!((10_700..11_300).contains(&arrived.iter().sum::<usize>()));
        assert!((450..550).contains(&arrived.iter().filter(|&&each| each == 2).count()));
        assert_eq!(wire.counts().frames, 20_000);
    }

    #[test]
    fn one_bit_of_some_frames_is_turned_over_behind_the_addresses() {
        let mut wire = Wire::new(Settings {
            corrupt: ALL / 10,
            seed: Some(5),
            ..plain()
        });
        let mut places = std::collections::BTreeSet::new();
        let mut wrong = 0;
        for at in 0..10_000 {
            let [first, _] = wire.carry(at, vec![0; 24]);
            let (_, frame) = first.unwrap();
            let bits: u32 = frame.iter().map(|byte| byte.count_ones()).sum();
            assert!(bits <= 1 && frame[..HEADER].iter().all(|&byte| byte == 0));
            wrong += bits;
            places.extend(
                frame
                    .iter()
                    .enumerate()
                    .filter(|(_, &byte)| byte > 0)
                    .map(|(at, &byte)| (at, byte)),
            );
        }
        assert!((900..1100).contains(&wrong), "{wrong}");
        assert_eq!(places.len(), 80);
    }

    #[test]
    fn a_credit_leaves_at_once_and_comes_back_with_the_rate() {
        let mut wire = Wire::new(Settings {
            rate_bps: Some(8_000_000),
            queue_bytes: Some(3000),
            credit_bytes: 2500,
            ..plain()
        });
        let arrivals: Vec<_> = (0..6).map(|_| arrival(&mut wire, 0, 1000)).collect();
        let at = |ms_after: u64| Some(5_000_000 + ms_after * 500_000);
        assert_eq!(arrivals, [at(0), at(0), at(1), at(3), at(5), None]);
        assert_eq!(wire.queued(0), 2500);
        assert_eq!(arrival(&mut wire, 4_500_000, 1000), Some(9_500_000));
        assert_eq!(arrival(&mut wire, 4_500_000, 1000), Some(9_500_000));
        assert_eq!(arrival(&mut wire, 4_500_000, 1000), Some(10_500_000));
        assert_eq!(wire.least_ns(), 5_000_000);
    }

    #[test]
    fn a_policer_drops_what_is_beyond_rate_and_credit() {
        let mut wire = Wire::new(Settings {
            rate_bps: Some(8_000_000),
            queue_bytes: Some(100_000),
            credit_bytes: 2500,
            excess_drops: 1,
            ..plain()
        });
        let arrivals: Vec<_> = (0..4).map(|_| arrival(&mut wire, 0, 1000)).collect();
        assert_eq!(arrivals, [Some(5_000_000), Some(5_000_000), None, None]);
        assert_eq!((wire.counts().dropped, wire.queued(0)), (2, 0));
        assert_eq!(arrival(&mut wire, 499_999, 1000), None);
        assert_eq!(arrival(&mut wire, 500_000, 1000), Some(5_500_000));
    }

    #[test]
    fn packets_that_are_too_large_are_lost_with_a_tag_or_without() {
        let mut wire = Wire::new(Settings {
            hole_bytes: Some(1400),
            ..plain()
        });
        let mut tagged = vec![0; 1418];
        tagged[12] = 0x81;
        assert!(arrival(&mut wire, 0, 1414).is_some());
        assert!(of(&mut wire, 0, &tagged).is_some());
        assert_eq!(arrival(&mut wire, 0, 1415), None);
        tagged.push(0);
        assert_eq!(of(&mut wire, 0, &tagged), None);
        assert_eq!(wire.counts().lost, 2);
    }

    #[test]
    fn some_settings_are_no_wires() {
        let wrong = |settings: Settings| settings.check().is_err();
        assert!(wrong(Settings {
            rate_bps: Some(0),
            ..plain()
        }));
        assert!(wrong(Settings {
            jitter_distribution: 4,
            ..plain()
        }));
        assert!(wrong(Settings {
            jitter_correlation: ALL + 1,
            ..plain()
        }));
        assert!(wrong(Settings {
            slot_ns: LONGEST_NS + 1,
            ..plain()
        }));
        assert!(!wrong(Settings {
            jitter_distribution: 3,
            jitter_correlation: ALL,
            ..plain()
        }));
    }

    #[test]
    fn frames_of_a_slot_arrive_together_and_in_order() {
        let mut wire = Wire::new(Settings {
            slot_ns: 10_000_000,
            ..plain()
        });
        let arrivals: Vec<u64> = (0..30)
            .map(|at| arrival(&mut wire, at * 1_000_000, 98).unwrap())
            .collect();
        assert!(arrivals.is_sorted());
        assert_eq!(&arrivals[..11], [15_000_000; 11]);
        assert_eq!(&arrivals[11..22], [26_000_000; 11]);
        assert!(wire.least_ns() == 5_000_000);
    }

    #[test]
    fn chance_spares_arp() {
        let mut arp = [0; 60];
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        let always = Settings {
            duplicate: ALL,
            corrupt: ALL,
            reorder: ALL,
            seed: Some(1),
            ..plain()
        };
        let mut wire = Wire::new(always);
        assert_eq!(
            wire.carry(0, arp.to_vec()),
            [Some((5_000_000, arp.to_vec())), None]
        );
        arp[12..18].copy_from_slice(&[0x81, 0x00, 0x00, 0x0a, 0x08, 0x06]);
        assert_eq!(
            wire.carry(1_000_000, arp.to_vec()),
            [Some((6_000_000, arp.to_vec())), None]
        );
    }

    #[test]
    fn numbers_that_follow_from_others_differ_and_are_never_0() {
        let drawn: std::collections::HashSet<u64> =
            (0..1000).map(|host| number_of(7, host)).collect();
        assert_eq!(drawn.len(), 1000);
        assert!(!drawn.contains(&0));
        assert_ne!(number_of(7, 0), number_of(8, 0));
    }
}
