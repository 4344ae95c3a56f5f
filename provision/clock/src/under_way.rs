//! How many frames of a host may be under way. They take memory of the clock's, of which no kernel may have any amount.

use std::cell::Cell;
use std::rc::Rc;

use crate::wire::Wire;

/// How much memory the clock needs for a frame beside its bytes, in bytes.
pub const FRAME_OVERHEAD: usize = 128;
/// How much may be under way in each direction of a link, in bytes: as much as 256 of the longest frames, which is what a paused
/// host's buffers hold.
pub const EVERY_PORT: usize = 16 << 20;
/// How much may be under way beyond that on all of a host's links without a rate together, in bytes: 40 TCP windows of 6 MiB,
/// the largest that Linux takes by itself (tcp_rmem in tcp(7)). Nothing else limits what is sent into such a link, since no time
/// passes while a program sends.
pub const WITHOUT_A_RATE: usize = 256 << 20;
/// How many times its own bytes of memory a frame takes at the most: the shortest that hosts send have some 42 bytes, and each may
/// be sent twice. On a link with a rate no more bytes are under way than its queue holds, its credit lets through at once, and than leave during its delay.
const OVERHEAD_TIMES: u128 = 8;
/// The longest frame, in bytes, with what it needs beside them.
const LONGEST_FRAME: u64 = 1 << 17;
const NS_PER_S: u128 = 1_000_000_000;

/// How many bytes are under way of one port's frames, and of all that its host has sent into links without a rate.
#[derive(Clone, Default)]
pub struct UnderWay {
    port: Rc<Cell<usize>>,
    host: Rc<Cell<usize>>,
}

impl UnderWay {
    pub fn of_port(host: &Rc<Cell<usize>>) -> UnderWay {
        UnderWay {
            port: Rc::default(),
            host: host.clone(),
        }
    }

    /// Take room for a frame of so many bytes that is sent over that wire. None if there is none.
    pub fn hold(&self, bytes: usize, wire: &Wire) -> Option<Held> {
        let bytes = bytes + FRAME_OVERHEAD;
        let (port, host) = (self.port.get() + bytes, self.host.get() + bytes);
        let limited = wire.settings().rate_bps.is_some();
        let room = port <= EVERY_PORT
            || if limited {
                port <= most_on(wire)
            } else {
                host <= WITHOUT_A_RATE
            };
        if !room {
            return None;
        }
        self.port.set(port);
        let host = (!limited).then(|| {
            self.host.set(host);
            self.host.clone()
        });
        Some(Held {
            port: self.port.clone(),
            host,
            bytes,
        })
    }
}

fn most_on(wire: &Wire) -> usize {
    let settings = wire.settings();
    let lasts_ns = u128::from(wire.longest_ns());
    let delayed = u128::from(settings.rate_bps.unwrap_or(0)) * lasts_ns / 8 / NS_PER_S;
    let at_once = u128::from(settings.queue_bytes.unwrap_or(0)) + u128::from(settings.credit_bytes);
    let frames = u128::from(settings.queue_frames.unwrap_or(0)) * u128::from(LONGEST_FRAME);
    let at_once = at_once + frames / OVERHEAD_TIMES;
    let most = (at_once + delayed) * OVERHEAD_TIMES;
    EVERY_PORT.saturating_add(usize::try_from(most).unwrap_or(usize::MAX))
}

/// Room for one frame. It is free again when this is dropped.
#[derive(Debug)]
pub struct Held {
    port: Rc<Cell<usize>>,
    host: Option<Rc<Cell<usize>>>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.port.set(self.port.get() - self.bytes);
        if let Some(host) = &self.host {
            host.set(host.get() - self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Settings;

    fn wire(rate_bps: Option<u64>, delay_ns: u64) -> Wire {
        let queue_bytes = rate_bps.map(|_| 1_000_000);
        Wire::new(Settings {
            rate_bps,
            queue_bytes,
            delay_ns,
            ..Settings::default()
        })
    }

    fn fill(port: &UnderWay, wire: &Wire, bytes: usize) -> Vec<Held> {
        std::iter::from_fn(|| port.hold(bytes, wire))
            .take(10_000_000)
            .collect()
    }

    #[test]
    fn a_link_without_a_rate_takes_so_much_and_then_no_more() {
        let (host, free) = (Rc::default(), wire(None, 60_000_000_000));
        let port = UnderWay::of_port(&host);
        let held = fill(&port, &free, 65_000);
        let bytes = held.len() * (65_000 + FRAME_OVERHEAD);
        assert!(
            (WITHOUT_A_RATE - 65_128..=WITHOUT_A_RATE).contains(&bytes),
            "{bytes}"
        );
        let other = UnderWay::of_port(&host);
        assert!(fill(&other, &free, 65_000).len() * (65_000 + FRAME_OVERHEAD) <= EVERY_PORT);
        drop(held);
        assert_eq!((port.port.get(), host.get()), (0, other.port.get()));
        assert!(port.hold(65_000, &free).is_some());
    }

    #[test]
    fn empty_frames_take_room_too() {
        let port = UnderWay::of_port(&Rc::default());
        assert_eq!(
            fill(&port, &wire(None, 1), 0).len(),
            WITHOUT_A_RATE / FRAME_OVERHEAD
        );
    }

    #[test]
    fn a_link_with_a_rate_holds_what_its_queue_and_its_delay_hold_in_the_shortest_frames() {
        // 1 Gbit/s for 100 ms are 12.5 MB.
        let long = wire(Some(1_000_000_000), 100_000_000);
        let port = UnderWay::of_port(&Rc::default());
        let frames = 13_500_000 / 42 * 2;
        assert!((0..frames)
            .map(|_| port.hold(42, &long))
            .collect::<Option<Vec<_>>>()
            .is_some());
    }
}
