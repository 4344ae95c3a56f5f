//! What a host does: by itself, and when something comes. The same on the clock as in the model, so that the two part as
//! soon as one of them lets something happen at another time, or in another order.

/// SplitMix64.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, and without, `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    pub fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

pub const MS: u64 = 1_000_000;
/// How many frames a host sends in all, so that a run ends.
const MOST_SENT: u64 = 150;
/// A frame's own bytes: its header, who sent it, and the how manieth of its host's it is.
const OWN_BYTES: usize = 14 + 1 + 8;
const LONGEST_FRAME: u64 = 1514;

/// A frame, and the port by which it comes or leaves.
pub type Frame = (usize, Vec<u8>);

/// What has happened on a host, at what time of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub at: u64,
    /// None: its timer ran out.
    pub frame: Option<Frame>,
}

pub struct Script {
    pub log: Vec<Entry>,
    /// When it next does something by itself.
    pub timer: Option<u64>,
    host: usize,
    ports: usize,
    sent: u64,
    chance: Chance,
}

impl Script {
    /// Of a host that is started at `from`; of each start another one.
    pub fn new(seed: u64, host: usize, ports: usize, from: u64) -> Script {
        let mut chance = Chance(seed ^ ((host as u64 + 1) << 48) ^ from.rotate_left(20));
        Script {
            log: Vec::new(),
            timer: Some(from + chance.below(2) * chance.below(MS)),
            host,
            ports,
            sent: 0,
            chance,
        }
    }

    /// At `now` of its own time these have come: what it sends. Frames that come in one moment come by the order of ports.
    pub fn act(&mut self, now: u64, mut inbox: Vec<Frame>) -> Vec<Frame> {
        inbox.sort_by_key(|(port, _)| *port);
        let mut outbox = Vec::new();
        for (port, frame) in inbox {
            if self.chance.one_in(3) {
                self.send(port, &mut outbox);
            }
            if self.chance.one_in(8) {
                let other = self.chance.below(self.ports as u64) as usize;
                self.send(other, &mut outbox);
            }
            if self.chance.one_in(8) {
                let sooner = now + 1 + self.chance.below(MS);
                self.timer = Some(self.timer.map_or(sooner, |timer| timer.min(sooner)));
            }
            self.log.push(Entry {
                at: now,
                frame: Some((port, frame)),
            });
        }
        if self.timer.is_some_and(|timer| timer <= now) {
            self.log.push(Entry {
                at: now,
                frame: None,
            });
            for _ in 0..self.chance.below(4) {
                let port = self.chance.below(self.ports as u64) as usize;
                self.send(port, &mut outbox);
            }
            self.timer = self.next_timer(now);
        }
        outbox
    }

    /// At the same time as those of others do, now and then, and as what comes after a delay of whole milliseconds.
    fn next_timer(&mut self, now: u64) -> Option<u64> {
        if self.sent >= MOST_SENT {
            return None;
        }
        let chance = &mut self.chance;
        match chance.below(12) {
            0 => None,
            1..=3 => Some(now + 1 + chance.below(1000)),
            4..=7 => Some((now / MS + 1 + chance.below(3)) * MS),
            _ => Some(now + 1 + chance.below(30 * MS)),
        }
    }

    fn send(&mut self, port: usize, outbox: &mut Vec<Frame>) {
        if self.sent >= MOST_SENT {
            return;
        }
        self.sent += 1;
        let longer = self.chance.below(LONGEST_FRAME - OWN_BYTES as u64);
        let length = OWN_BYTES
            + match self.chance.below(3) {
                0 => 0,
                1 => longer % 100,
                _ => longer,
            } as usize;
        let mut frame = vec![0; length];
        let kind: [u8; 2] = if self.chance.one_in(16) {
            [0x08, 0x06]
        } else {
            [0x88, 0xb5]
        };
        frame[12..14].copy_from_slice(&kind);
        frame[14] = self.host as u8;
        frame[15..OWN_BYTES].copy_from_slice(&self.sent.to_be_bytes());
        outbox.push((port, frame));
    }
}
