//! Storms: frames that go round in a loop of bridges and take no time, so that the lab's time stands still while they do.
//!
//! A host that bridges sends a frame on as it is. So the clock knows a frame by its content, and notes which hosts it has passed.
//! A frame that comes to a host which it has passed before goes round. Of such a frame each port lets a few copies pass in a
//! millisecond of the lab, and drops the others, as a switch's storm control does; on links with a rate or a delay to speak of no
//! frame goes round as often. Where few frames come, which is nearly always, nothing is looked at.
//!
//! All times are nanoseconds of the lab's clock. What a host sees of others is what they had sent when its window began, so that
//! the result does not depend on which of them is faster.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

/// From this many frames on that come to a host within so many nanoseconds, it is watched: a million a second.
const MANY: u64 = 100;
const MANY_WITHIN_NS: u64 = 100_000;
/// How long a host is watched after that.
const WATCHED_NS: u64 = 1_000_000_000;
/// How many copies of a frame that goes round a port lets pass, and within which time.
const MOST_COPIES: u32 = 16;
const COPIES_WITHIN_NS: u64 = 1_000_000;
/// How many frames are known at the most, of a host and of all hosts. Then those that do not go round are forgotten.
const MOST_KNOWN: usize = 4096;
const MOST_PASSED: usize = 1 << 16;

/// The hosts that a frame has passed, by their numbers modulo 128. In a larger lab two hosts may be taken for one; what is dropped
/// for that is a frame of which a port sends more than MOST_COPIES in a millisecond.
type Hosts = u128;

fn only(host: usize) -> Hosts {
    1 << (host % 128)
}

/// By (host, content): the hosts that a frame which this one has sent on has passed, with itself.
type Passed = HashMap<(usize, u128), Hosts>;

/// What all hosts of a lab know of storms.
#[derive(Default)]
pub struct Storms {
    passed: Passed,
    /// What becomes known at the end of the window.
    learnt: Vec<((usize, u128), Hosts)>,
    /// When something last became known.
    learnt_at: u64,
    struck: BTreeMap<(usize, usize), Struck>,
}

pub type Shared = Rc<RefCell<Storms>>;

/// What has become of a storm at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Struck {
    /// When it began to drop.
    pub since_ns: u64,
    pub dropped: u64,
}

/// A port at which there has been a storm.
#[derive(Serialize)]
pub struct StruckPort {
    pub host: usize,
    pub port: usize,
    #[serde(flatten)]
    pub struck: Struck,
}

impl Storms {
    /// The window has ended at `now`: what was sent in it is known to all.
    pub fn window_ends(&mut self, now: u64) {
        if self.learnt.is_empty() {
            return;
        }
        if self.passed.len() > MOST_PASSED || now > self.learnt_at.saturating_add(WATCHED_NS) {
            self.passed.clear();
        }
        self.learnt_at = now;
        for (key, hosts) in self.learnt.drain(..) {
            *self.passed.entry(key).or_default() |= hosts;
        }
    }

    /// The ports at which there have been storms.
    pub fn struck(&self) -> Vec<StruckPort> {
        let all = self.struck.iter();
        all.map(|((host, port), struck)| StruckPort {
            host: *host,
            port: *port,
            struck: *struck,
        })
        .collect()
    }

    /// The lab has other links.
    pub fn forget(&mut self) {
        self.passed.clear();
        self.struck.clear();
    }
}

/// A frame that has come to a host.
#[derive(Default)]
struct Known {
    passed: Hosts,
    /// Whether it has come to a host that it had passed before.
    goes_round: bool,
    /// When the copies began to be counted, and how many each port has sent since.
    since: u64,
    copies: Vec<u32>,
}

/// What one host knows of storms.
pub struct Watch {
    host: usize,
    shared: Shared,
    /// The stretch of time in which frames are counted, and how many have come in it.
    stretch: u64,
    came: u64,
    /// Until when the host is watched.
    until: u64,
    known: HashMap<u128, Known>,
}

impl Watch {
    pub fn new(host: usize, shared: Shared) -> Watch {
        Watch {
            host,
            shared,
            stretch: 0,
            came: 0,
            until: 0,
            known: HashMap::new(),
        }
    }

    /// A frame comes to the host at `time`, which that host has sent.
    pub fn comes(&mut self, time: u64, from: usize, frame: &[u8]) {
        let stretch = time / MANY_WITHIN_NS;
        if stretch != self.stretch {
            (self.stretch, self.came) = (stretch, 0);
        }
        self.came += 1;
        if self.came >= MANY {
            self.until = time.saturating_add(WATCHED_NS);
        } else if time >= self.until {
            self.known.clear();
            return;
        }
        if self.known.len() >= MOST_KNOWN {
            self.known.retain(|_, known| known.goes_round);
            if self.known.len() >= MOST_KNOWN {
                self.known.clear();
            }
        }
        let content = xxh3_128(frame);
        let before = self.shared.borrow().passed.get(&(from, content)).copied();
        let known = self.known.entry(content).or_default();
        known.passed |= before.unwrap_or_default() | only(from);
        known.goes_round |= known.passed & only(self.host) != 0;
    }

    /// The host sends a frame by a port at `time`. False if it goes round, and enough of it has passed.
    pub fn passes(&mut self, time: u64, port: usize, content: u128) -> bool {
        let Some(known) = self.known.get_mut(&content) else {
            return true;
        };
        let mut shared = self.shared.borrow_mut();
        let passed = known.passed | only(self.host);
        shared.learnt.push(((self.host, content), passed));
        if time >= known.since.saturating_add(COPIES_WITHIN_NS) {
            known.since = time;
            known.copies.clear();
        }
        if known.copies.len() <= port {
            known.copies.resize(port + 1, 0);
        }
        if !known.goes_round || known.copies[port] < MOST_COPIES {
            known.copies[port] = known.copies[port].saturating_add(1);
            return true;
        }
        let struck = shared.struck.entry((self.host, port)).or_insert(Struck {
            since_ns: time,
            dropped: 0,
        });
        struck.dropped += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: &[u8] = b"who has 10.0.0.1?";

    /// Bridges that send what comes by one port on by all others, over links that take `hop_ns`.
    struct Lab {
        shared: Shared,
        watches: Vec<Watch>,
        /// By host and port, the host and port at the other end.
        ends: Vec<Vec<(usize, usize)>>,
        hop_ns: u64,
    }

    impl Lab {
        fn new(hosts: usize, links: &[(usize, usize)], hop_ns: u64) -> Lab {
            let shared = Shared::default();
            let watches = (0..hosts).map(|host| Watch::new(host, shared.clone()));
            let mut ends = vec![Vec::new(); hosts];
            for (a, b) in links {
                let (at, there) = (ends[*a].len(), ends[*b].len());
                ends[*a].push((*b, there));
                ends[*b].push((*a, at));
            }
            Lab {
                watches: watches.collect(),
                shared,
                ends,
                hop_ns,
            }
        }

        /// Host 0 sends so many equal frames at once by each of its ports. Returns how many frames all ports have sent by the
        /// time that nothing is under way, or a hundred hops are over.
        fn sent(&mut self, frames: usize) -> usize {
            let mut now = 0;
            let ports = 0..self.ends[0].len();
            let mut out: Vec<(usize, usize)> = ports
                .flat_map(|port| vec![(0, port); frames])
                .filter(|(host, port)| self.watches[*host].passes(0, *port, xxh3_128(FRAME)))
                .collect();
            let mut count = out.len();
            for _ in 0..100 {
                if out.is_empty() {
                    break;
                }
                now += self.hop_ns;
                self.shared.borrow_mut().window_ends(now);
                let mut next = Vec::new();
                for (host, port) in out {
                    let (to, at) = self.ends[host][port];
                    self.watches[to].comes(now, host, FRAME);
                    for other in (0..self.ends[to].len()).filter(|other| *other != at) {
                        if self.watches[to].passes(now, other, xxh3_128(FRAME)) {
                            next.push((to, other));
                        }
                    }
                }
                count += next.len();
                out = next;
            }
            count
        }

        fn struck(&self) -> Vec<(usize, usize)> {
            let struck = self.shared.borrow().struck();
            struck.iter().map(|one| (one.host, one.port)).collect()
        }
    }

    fn mesh(hosts: usize) -> Vec<(usize, usize)> {
        (0..hosts)
            .flat_map(|a| (0..a).map(move |b| (a, b)))
            .collect()
    }

    #[test]
    fn a_ring_without_time_ends_and_each_of_its_ports_is_named() {
        let mut lab = Lab::new(3, &[(0, 1), (1, 2), (2, 0)], 1);
        for watch in &mut lab.watches {
            watch.until = WATCHED_NS; // as by other frames
        }
        let sent = lab.sent(1);
        assert!((6..=6 * 20).contains(&sent), "{sent}");
        assert!(!lab.struck().is_empty());
    }

    #[test]
    fn by_itself_a_ring_is_watched_before_long() {
        let mut lab = Lab::new(3, &[(0, 1), (1, 2), (2, 0)], 1);
        let mut sent = 0;
        for _ in 0..10 {
            sent += lab.sent(40);
        }
        assert!(sent < 10_000, "{sent}");
    }

    #[test]
    fn two_links_between_two_bridges_are_a_ring() {
        let mut lab = Lab::new(2, &[(0, 1), (0, 1)], 1);
        lab.sent(200);
        assert_eq!(lab.struck().len(), 4);
    }

    #[test]
    fn a_mesh_in_which_frames_multiply_ends() {
        let mut lab = Lab::new(6, &mesh(6), 1);
        let sent = lab.sent(1);
        assert!(sent < 200_000, "{sent}");
        assert_eq!(lab.struck().len(), 30);
    }

    #[test]
    fn any_number_of_equal_frames_passes_where_nothing_goes_round() {
        let mut lab = Lab::new(5, &[(0, 1), (1, 2), (1, 3), (3, 4)], 1);
        assert_eq!(lab.sent(50_000), 4 * 50_000);
        assert!(lab.struck().is_empty());
    }

    #[test]
    fn what_goes_round_over_links_with_a_delay_is_left_alone() {
        let mut lab = Lab::new(3, &[(0, 1), (1, 2), (2, 0)], 1_000_000);
        assert_eq!(lab.sent(1), 2 + 2 * 100);
        assert!(lab.struck().is_empty());
    }

    #[test]
    fn what_is_known_is_bounded() {
        let mut watch = Watch::new(1, Shared::default());
        for number in 0..100_000u64 {
            watch.comes(1, 0, &number.to_be_bytes());
            watch.passes(1, 0, xxh3_128(&number.to_be_bytes()));
            watch.shared.borrow_mut().window_ends(1);
        }
        assert!(watch.known.len() <= MOST_KNOWN);
        assert!(watch.shared.borrow().passed.len() <= MOST_PASSED + 1);
    }
}
