//! One direction of a link: what it does to the frames sent into it, to the nanosecond.

use serde::{Deserialize, Serialize};

const ALL: u64 = 1 << 32;
/// Nothing is faster than this: a frame never arrives in the moment in which it was sent.
pub const LEAST_NS: u64 = 1;
const NS_PER_S: u128 = 1_000_000_000;
const SHORTEST_FRAME: u64 = 14;

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Settings {
    pub rate_bps: Option<u64>,
    pub queue_bytes: Option<u64>,
    pub delay_ns: u64,
    pub jitter_ns: u64,
    /// The share of frames that is lost, in 1/2^32.
    pub loss: u64,
    pub seed: Option<u64>,
}

/// What has come of the frames sent into it. `dropped`: the queue was full, or the host at the other end had no room.
/// `lost`: by chance, or the link is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub frames: u64,
    pub bytes: u64,
    pub dropped: u64,
    pub lost: u64,
}

pub struct Wire {
    settings: Settings,
    counts: Counts,
    chance: Chance,
    /// When the last frame accepted will have left.
    free_at: u64,
}

impl Wire {
    pub fn new(settings: Settings) -> Wire {
        let chance = Chance(settings.seed.unwrap_or(0));
        Wire { settings, counts: Counts::default(), chance, free_at: 0 }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Set anew: its random numbers begin again, what is on its way arrives, and the queue stays as it is.
    pub fn set(&mut self, settings: Settings) {
        self.chance = Chance(settings.seed.unwrap_or(0));
        self.settings = settings;
    }

    /// The least time that any frame takes.
    pub fn least_ns(&self) -> u64 {
        (self.settings.delay_ns.saturating_sub(self.settings.jitter_ns) + self.transmission_ns(SHORTEST_FRAME))
            .max(LEAST_NS)
    }

    /// When a frame sent at `now` arrives at the other end; None if it does not.
    ///
    /// ARP is not lost by chance, only on a link that is cut: it would cost a second, and a number that decides over
    /// something else.
    pub fn carry(&mut self, now: u64, frame: &[u8]) -> Option<u64> {
        let bytes = frame.len() as u64;
        let start = self.free_at.max(now);
        if let (Some(rate), Some(queue)) = (self.settings.rate_bps, self.settings.queue_bytes) {
            let waiting = u128::from(start - now) * u128::from(rate) / 8 / NS_PER_S;
            if waiting + u128::from(bytes) > u128::from(queue) {
                self.counts.dropped += 1;
                return None;
            }
        }
        let left = start + self.transmission_ns(bytes);
        self.free_at = left;
        self.counts.frames += 1;
        self.counts.bytes += bytes;
        let spared = is_arp(frame) && self.settings.loss < ALL;
        if self.settings.loss > 0 && !spared && self.chance.below(ALL) < self.settings.loss {
            self.counts.lost += 1;
            return None;
        }
        Some((left + self.delay_ns()).max(now + LEAST_NS))
    }

    /// A frame that it had taken found no room at the other end.
    pub fn drop_at_end(&mut self) {
        self.counts.dropped += 1;
    }

    fn transmission_ns(&self, bytes: u64) -> u64 {
        match self.settings.rate_bps {
            Some(rate) => (u128::from(bytes) * 8 * NS_PER_S).div_ceil(u128::from(rate)) as u64,
            None => 0,
        }
    }

    fn delay_ns(&mut self) -> u64 {
        let Settings { delay_ns, jitter_ns, .. } = self.settings;
        if jitter_ns == 0 {
            return delay_ns;
        }
        (delay_ns + self.chance.below(2 * jitter_ns + 1)).saturating_sub(jitter_ns)
    }
}

fn is_arp(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[0x08, 0x06])
}

/// SplitMix64 (Steele, Lea and Flood 2014): small, and the same on every machine.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, and without, `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Settings {
        Settings { rate_bps: None, queue_bytes: None, delay_ns: 5_000_000, jitter_ns: 0, loss: 0, seed: None }
    }

    #[test]
    fn a_delay_is_kept_to_the_nanosecond() {
        assert_eq!(Wire::new(plain()).carry(17, &[0; 98]), Some(5_000_017));
    }

    #[test]
    fn frames_leave_one_after_the_other() {
        let mut wire = Wire::new(Settings { rate_bps: Some(8_000_000), queue_bytes: Some(5000), ..plain() });
        assert_eq!(wire.carry(0, &[0; 1000]), Some(6_000_000));
        assert_eq!(wire.carry(0, &[0; 1000]), Some(7_000_000));
        assert_eq!(wire.carry(500_000, &[0; 1000]), Some(8_000_000));
    }

    #[test]
    fn a_full_queue_drops() {
        let mut wire = Wire::new(Settings { rate_bps: Some(8_000_000), queue_bytes: Some(2000), ..plain() });
        assert!(wire.carry(0, &[0; 1000]).is_some());
        assert!(wire.carry(0, &[0; 1000]).is_some());
        assert_eq!(wire.carry(0, &[0; 1000]), None);
        assert_eq!(wire.counts().dropped, 1);
        assert!(wire.carry(1_000_000, &[0; 1000]).is_some());
    }

    #[test]
    fn losses_come_with_their_share_and_again() {
        let some = Settings { loss: ALL / 10, seed: Some(7), ..plain() };
        let lost = || {
            let mut wire = Wire::new(some.clone());
            (0..10_000).filter(|&at| wire.carry(at, &[0; 98]).is_none()).collect::<Vec<u64>>()
        };
        assert_eq!(lost(), lost());
        assert!((900..1100).contains(&lost().len()));
        let mut cut = Wire::new(Settings { loss: ALL, ..plain() });
        assert!((0..1000).all(|at| cut.carry(at, &[0; 98]).is_none()));
    }

    #[test]
    fn arp_is_lost_on_a_cut_link_alone() {
        let mut arp = [0; 60];
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        let mut lossy = Wire::new(Settings { loss: ALL - 1, seed: Some(3), ..plain() });
        assert!((0..100).all(|at| lossy.carry(at, &arp).is_some()));
        assert_eq!(Wire::new(Settings { loss: ALL, ..plain() }).carry(0, &arp), None);
    }

    #[test]
    fn jitter_stays_within() {
        let mut wire = Wire::new(Settings { jitter_ns: 1_000_000, seed: Some(1), ..plain() });
        let delays: Vec<u64> = (0..1000).map(|at| wire.carry(at * 100_000, &[0; 98]).unwrap() - at * 100_000).collect();
        assert!(delays.iter().all(|delay| (4_000_000..=6_000_000).contains(delay)));
        assert!(delays.iter().max() > Some(&5_900_000) && delays.iter().min() < Some(&4_100_000));
        assert!(wire.least_ns() >= 4_000_000);
    }
}
