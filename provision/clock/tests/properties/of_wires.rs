//! A link keeps no frame to itself, is never faster than it may be, and forgets what it was when it is set anew.

use std::collections::HashMap;

use crate::for_all;
use crate::of_changes::Line;
use crate::script::{Chance, MS};
use crate::under_way::{UnderWay, EVERY_PORT, FRAME_OVERHEAD, WITHOUT_A_RATE};
use crate::wire::{Arrivals, Counts, Settings, Wire, LEAST_NS, SHORTEST_FRAME};

const ALL: u64 = 1 << 32;
const NS_PER_S: u128 = 1_000_000_000;
const HEADER: usize = 14;
/// Thirty years: the longest delay that a link may have.
const LONGEST_NS: u64 = 1_000_000_000 * 1_000_000_000;

pub fn share(chance: &mut Chance) -> u64 {
    match chance.below(4) {
        0 => chance.below(ALL),
        1 => ALL / 10,
        2 => chance.pick(&[1, ALL - 1, ALL]),
        _ => 0,
    }
}

/// Quantiles of a link's own, as a list of measured delays gives them.
fn own_table(chance: &mut Chance) -> Vec<i64> {
    let mut table: Vec<i64> = (0..2 + chance.below(60))
        .map(|_| chance.below(6 << 16) as i64 - (3 << 16))
        .collect();
    table.sort_unstable();
    table
}

/// One that nothing but its rate, its queue and its delay does anything to.
fn plain(chance: &mut Chance) -> Settings {
    let rate_bps =
        (!chance.one_in(3)).then(|| chance.pick(&[1, 9600, 1_000_000, 99_999_999, 1_000_000_000]));
    Settings {
        rate_bps,
        queue_bytes: rate_bps
            .filter(|_| !chance.one_in(3))
            .map(|_| chance.pick(&[0, 1500, 3000, 50_000])),
        delay_ns: chance.pick(&[0, 1, 999, MS, 30 * MS]),
        ..Settings::default()
    }
}

pub fn any(chance: &mut Chance) -> Settings {
    let ends = chance.one_in(3);
    Settings {
        jitter_ns: chance.pick(&[0, 0, 1, MS / 2, 40 * MS]),
        jitter_distribution: chance.below(5),
        jitter_table: own_table(chance),
        jitter_correlation: share(chance),
        jitter_overtakes: chance.below(2),
        credit_bytes: chance.pick(&[0, 0, 1000, 20_000]),
        excess_drops: u64::from(chance.one_in(6)),
        hole_bytes: chance.one_in(6).then(|| chance.pick(&[0, 100, 1400])),
        burst_spares: share(chance),
        between_bursts: share(chance),
        loss: share(chance),
        seed: (!chance.one_in(8)).then(|| chance.next()),
        burst_begins: share(chance),
        burst_ends: if ends { 1 + chance.below(ALL) } else { 0 },
        reorder: share(chance),
        duplicate: share(chance),
        corrupt: share(chance),
        slot_ns: chance.pick(&[0, 0, 0, 1, 10 * MS]),
        ..plain(chance)
    }
}

pub struct Sent {
    pub now: u64,
    pub frame: Vec<u8>,
    pub is_arp: bool,
}

/// Frames one after the other, some at the same time.
pub fn sent(chance: &mut Chance, from: u64) -> Vec<Sent> {
    let mut now = from;
    let count = 1 + chance.below(60);
    let one = |_| {
        now += chance.pick(&[0, 0, 1, 1000, MS, 20 * MS]);
        let length = chance.pick(&[SHORTEST_FRAME, 60, 98, 1514]) as usize;
        let is_arp = chance.one_in(8);
        let mut frame: Vec<u8> = (0..length).map(|_| chance.next() as u8).collect();
        let kind: [u8; 2] = if is_arp { [0x08, 0x06] } else { [0x08, 0x00] };
        frame[12..HEADER].copy_from_slice(&kind);
        Sent { now, frame, is_arp }
    };
    (0..count).map(one).collect()
}

fn bits_between(one: &[u8], other: &[u8]) -> u32 {
    assert_eq!(one.len(), other.len());
    let pairs = one.iter().zip(other);
    pairs.map(|(one, other)| (one ^ other).count_ones()).sum()
}

#[test]
fn the_longest_delay_and_the_longest_jitter_add_up() {
    for jitter_distribution in 0..4 {
        let settings = Settings {
            delay_ns: LONGEST_NS,
            jitter_ns: LONGEST_NS,
            jitter_distribution,
            ..Settings::default()
        };
        let longest = Wire::new(settings).longest_ns();
        assert!(longest > LONGEST_NS / 2 * 3, "{longest}");
    }
}

#[test]
fn settings_are_refused_beyond_their_bounds_and_not_at_them() {
    let none = Settings::default();
    let (rate_bps, peak_bps) = (Some(1000), Some(1000));
    let at = [
        Settings {
            delay_ns: LONGEST_NS,
            jitter_ns: LONGEST_NS,
            slot_ns: LONGEST_NS,
            ..none.clone()
        },
        Settings {
            jitter_correlation: ALL,
            ..none.clone()
        },
        Settings {
            rate_bps: Some(1),
            ..none.clone()
        },
        Settings {
            rate_bps,
            peak_bps,
            ..none.clone()
        },
    ];
    let beyond = [
        Settings {
            delay_ns: LONGEST_NS + 1,
            ..none.clone()
        },
        Settings {
            jitter_ns: LONGEST_NS + 1,
            ..none.clone()
        },
        Settings {
            slot_ns: LONGEST_NS + 1,
            ..none.clone()
        },
        Settings {
            jitter_correlation: ALL + 1,
            ..none.clone()
        },
        Settings {
            rate_bps: Some(0),
            ..none.clone()
        },
        Settings {
            rate_bps,
            peak_bps: Some(999),
            ..none.clone()
        },
        Settings {
            rate_bps: None,
            peak_bps,
            ..none.clone()
        },
        Settings {
            jitter_distribution: 5,
            ..none
        },
    ];
    for settings in at {
        assert_eq!(settings.check(), Ok(()), "{settings:?}");
    }
    for settings in beyond {
        assert!(settings.check().is_err(), "{settings:?}");
    }
}

#[test]
fn every_frame_arrives_or_is_counted_and_none_comes_from_nowhere() {
    for_all(|chance| {
        let settings = any(chance);
        let mut wire = Wire::new(settings.clone());
        for Sent { now, frame, is_arp } in sent(chance, 0) {
            let (before, bytes) = (wire.counts(), frame.len() as u64);
            let arrivals = wire.carry(now, frame.clone());
            let after = wire.counts();
            let arrived = arrivals.iter().flatten().count() as u64;
            let lost = after.lost - before.lost;
            assert_eq!(after.overrun, 0);
            if after.dropped > before.dropped {
                assert!(settings.queue_bytes.is_some() || settings.excess_drops != 0);
                assert_eq!((after.frames, after.bytes), (before.frames, before.bytes));
                assert_eq!((after.dropped - before.dropped, arrived, lost), (1, 0, 0));
                continue;
            }
            assert_eq!(after.frames - before.frames, 1);
            assert_eq!(after.bytes - before.bytes, bytes);
            assert!((1..=2).contains(&(arrived + lost)), "{arrived} {lost}");
            if settings.duplicate == 0 || is_arp && settings.loss < ALL {
                assert_eq!(arrived + lost, 1);
            } else if settings.duplicate == ALL {
                assert_eq!(arrived + lost, 2);
            }
            if settings.loss == ALL && settings.burst_ends == 0 {
                assert_eq!(arrived, 0);
            }
            if is_arp && settings.loss < ALL {
                assert_eq!(
                    (lost, arrivals[0].as_ref().map(|one| &one.1)),
                    (0, Some(&frame))
                );
            }
            for (_, came) in arrivals.iter().flatten() {
                let changed = bits_between(&frame, came);
                let most = u32::from(settings.corrupt > 0 && frame.len() > HEADER);
                assert!(changed <= most, "{changed} bits are others");
                assert_eq!(frame[..HEADER], came[..HEADER]);
                if settings.corrupt == ALL && most == 1 && !is_arp {
                    assert_eq!(changed, 1);
                }
            }
        }
        if settings.burst_ends == 0 && settings.loss == 0 && settings.hole_bytes.is_none() {
            assert_eq!(wire.counts().lost, 0);
        }
    });
}

#[test]
fn nothing_arrives_before_the_least_time_that_the_window_goes_by() {
    for_all(|chance| {
        let mut wire = Wire::new(any(chance));
        for Sent { now, frame, .. } in sent(chance, 0) {
            assert!(wire.least_ns() >= LEAST_NS);
            for (time, _) in wire.carry(now, frame).iter().flatten() {
                assert!(*time >= now + wire.least_ns());
            }
            if chance.one_in(20) {
                wire.set(now, any(chance), HashMap::new());
            }
        }
    });
}

/// Within any stretch of a link no more than its rate lets through, and as soon as that lets it.
#[test]
fn a_rate_is_kept_and_no_moment_of_it_lost() {
    for_all(|chance| {
        let settings = plain(chance);
        let Some(rate) = settings.rate_bps.map(u128::from) else {
            return;
        };
        let mut wire = Wire::new(settings.clone());
        let mut left = 0;
        for Sent { now, frame, .. } in sent(chance, 0) {
            let bits = frame.len() as u128 * 8;
            let waits = wire.queued(now);
            let [came, _] = wire.carry(now, frame.clone());
            let Some((time, _)) = came else {
                let queue = settings.queue_bytes.expect("one that is full");
                assert!(waits + frame.len() as u64 > queue, "there was room");
                continue;
            };
            if let Some(queue) = settings.queue_bytes {
                // A part of a nanosecond at the end of each frame is not free for the next one.
                assert!(wire.queued(now) <= queue + 1);
            }
            let begins = now.max(left);
            let takes = u128::from(time - settings.delay_ns - begins);
            assert!(takes * rate >= bits * NS_PER_S, "faster than its rate");
            assert!((takes - 1) * rate < bits * NS_PER_S, "slower than its rate");
            left = time - settings.delay_ns;
        }
    });
}

#[test]
fn what_was_sent_waits_until_it_has_left() {
    for_all(|chance| {
        let settings = Settings {
            rate_bps: Some(chance.pick(&[1, 9600, 99_999_999])),
            queue_bytes: None,
            ..plain(chance)
        };
        let (mut wire, mut all) = (Wire::new(settings.clone()), 0);
        for Sent { now, frame, .. } in sent(chance, 0) {
            let bytes = frame.len() as u64;
            all += bytes;
            let [came, _] = wire.carry(now, frame);
            let left = came.expect("nothing is lost").0 - settings.delay_ns;
            // A part of a nanosecond for each frame.
            assert!((bytes..=all + 1).contains(&wire.queued(now)));
            assert_eq!(wire.queued(left), 0);
        }
    });
}

#[test]
fn without_chance_frames_arrive_in_the_order_in_which_they_were_sent() {
    for_all(|chance| {
        let settings = Settings {
            duplicate: share(chance),
            loss: share(chance),
            slot_ns: chance.pick(&[0, 1, 10 * MS]),
            seed: Some(chance.next()),
            ..plain(chance)
        };
        let mut wire = Wire::new(settings);
        let mut last = 0;
        for Sent { now, frame, .. } in sent(chance, 0) {
            for (time, _) in wire.carry(now, frame).iter().flatten() {
                assert!(*time >= last);
                last = *time;
            }
        }
    });
}

#[test]
fn jitter_and_slots_stay_within_what_they_may_add() {
    for_all(|chance| {
        let settings = Settings {
            rate_bps: None,
            queue_bytes: None,
            excess_drops: 0,
            jitter_distribution: 0,
            reorder: 0,
            ..any(chance)
        };
        let Settings {
            delay_ns,
            jitter_ns,
            slot_ns,
            ..
        } = settings;
        let mut wire = Wire::new(settings.clone());
        for Sent { now, frame, .. } in sent(chance, 0) {
            for (time, _) in wire.carry(now, frame).iter().flatten() {
                let took = time - now;
                assert!(took >= delay_ns.saturating_sub(jitter_ns).max(LEAST_NS));
                assert!(took <= (delay_ns + jitter_ns + slot_ns).max(LEAST_NS));
            }
        }
    });
}

/// However a delay varies, what was sent first arrives first: with duplicates, slots, and when the link is set anew.
#[test]
fn order_is_kept_where_nothing_else_is_said() {
    for_all(|chance| {
        let kept = |chance: &mut Chance| Settings {
            reorder: 0,
            jitter_overtakes: 0,
            ..any(chance)
        };
        let mut line = Line::new(kept(chance));
        for Sent { now, frame, .. } in sent(chance, 0) {
            line.carry(now, frame);
            assert!(line.times().is_sorted(), "a frame has overtaken another");
            if chance.one_in(20) {
                line.set(now, kept(chance));
                assert!(line.times().is_sorted(), "a frame has overtaken another");
            }
        }
    });
}

/// Frames at a distance that no delay exceeds, so that order changes nothing: the delays are those of the distribution.
#[test]
fn delays_have_the_mean_and_the_standard_deviation_that_are_set() {
    const COUNT: u64 = 100_000;
    for distribution in 1..4 {
        let mut wire = Wire::new(Settings {
            delay_ns: 400 * MS,
            jitter_ns: 10 * MS,
            jitter_distribution: distribution,
            seed: Some(distribution),
            ..Settings::default()
        });
        let delays: Vec<f64> = (0..COUNT)
            .map(|at| {
                let now = at * 1000 * MS;
                let [came, _] = wire.carry(now, vec![0; 98]);
                (came.expect("nothing is lost").0 - now) as f64 / MS as f64
            })
            .collect();
        let mean = delays.iter().sum::<f64>() / COUNT as f64;
        let squares = delays.iter().map(|delay| (delay - mean).powi(2));
        let sd = (squares.sum::<f64>() / COUNT as f64).sqrt();
        // Of Pareto's tail the 4096th part weighs a tenth of the variance.
        assert!((mean - 400.0).abs() < 0.2, "{distribution}: {mean}");
        assert!((sd - 10.0).abs() < 0.5, "{distribution}: {sd}");
    }
}

/// A token bucket: in no stretch of time more than the credit, what the rate gives meanwhile, and, where the credit is less
/// than the first frame of it, that frame. And as soon as that lets it.
#[test]
fn no_more_leaves_than_credit_and_rate_let_through() {
    for_all(|chance| {
        let drops = chance.one_in(2);
        let settings = Settings {
            credit_bytes: chance.pick(&[1, 1514, 5000, 40_000]),
            excess_drops: u64::from(drops),
            rate_bps: Some(chance.pick(&[9600, 1_000_000, 99_999_999])),
            delay_ns: 0,
            ..plain(chance)
        };
        let rate = u128::from(settings.rate_bps.expect("one"));
        let mut wire = Wire::new(settings.clone());
        let mut left: Vec<(u64, u64)> = Vec::new();
        for Sent { now, frame, .. } in sent(chance, 1) {
            let bytes = frame.len() as u64;
            let is_first = wire.counts() == Counts::default();
            if let [Some((time, _)), _] = wire.carry(now, frame) {
                // What takes no time arrives one nanosecond later.
                left.push((if time == now + LEAST_NS { now } else { time }, bytes));
                assert!(!is_first || bytes > settings.credit_bytes || time == now + LEAST_NS);
                assert!(
                    !drops || left[left.len() - 1].0 == now,
                    "a policer lets nothing wait"
                );
            }
        }
        for begin in 0..left.len() {
            let mut all = 0;
            for (time, bytes) in &left[begin..] {
                all += u128::from(*bytes);
                let most = u128::from(settings.credit_bytes.max(left[begin].1))
                    + rate * u128::from(time - left[begin].0 + LEAST_NS) / 8 / NS_PER_S;
                assert!(all <= most + 1, "{all} bytes where {most} may be");
            }
        }
    });
}

/// With a peak, in no stretch of time more than it lets through either, and each frame leaves as soon as the two let it.
#[test]
fn no_more_leaves_than_a_peak_lets_through() {
    for_all(|chance| {
        let rate = chance.pick(&[1_000_000, 99_999_999]);
        let peak = rate * chance.pick(&[1, 2, 10]);
        let credit = chance.pick(&[1514, 5000, 40_000]);
        let mut wire = Wire::new(Settings {
            rate_bps: Some(rate),
            credit_bytes: credit,
            peak_bps: Some(peak),
            ..Settings::default()
        });
        let ns = |rate: u64, bytes: u64| bytes as f64 * 8e9 / rate as f64;
        // What is left of the credit, in bytes, at the time `at`.
        let (mut at, mut tokens) = (0.0, credit as f64);
        for Sent { now, frame, .. } in sent(chance, 0) {
            let bytes = frame.len() as u64;
            let [came, _] = wire.carry(now, frame);
            let left = came.expect("nothing is lost").0 as f64;
            let begins = f64::max(at, now as f64);
            tokens = f64::min(credit as f64, tokens + (begins - at) * rate as f64 / 8e9);
            let lacks = ns(rate, bytes) - ns(rate, 1) * tokens;
            let earliest = begins + f64::max(ns(peak, bytes), lacks);
            // A part of a nanosecond for each frame.
            assert!((left - earliest).abs() < 130.0, "{left}, not {earliest}");
            tokens += (earliest - begins) * rate as f64 / 8e9 - bytes as f64;
            at = earliest;
        }
    });
}

/// Of a table that a link brings, each delay comes with its share: the greatest distance of the two distributions is within
/// what Kolmogorov's statistic exceeds with a chance of 1e-6 (Massart 1990), whatever the correlation of neighbours is not.
#[test]
fn delays_have_the_quantiles_of_an_own_table() {
    const COUNT: usize = 20_000;
    let furthest = (f64::ln(2e6) / (2.0 * COUNT as f64)).sqrt();
    for_all(|chance| {
        let settings = Settings {
            delay_ns: 400 * MS,
            jitter_ns: 10 * MS,
            jitter_distribution: 4,
            jitter_table: own_table(chance),
            seed: Some(chance.next()),
            ..Settings::default()
        };
        let table: Vec<u64> = settings
            .jitter_table
            .iter()
            .map(|quantile| {
                (400 * MS as i64 + (quantile * 10 * MS as i64).div_euclid(1 << 16)) as u64
            })
            .collect();
        let mut wire = Wire::new(settings);
        let mut delays: Vec<u64> = (0..COUNT as u64)
            .map(|at| {
                let now = at * 1000 * MS;
                wire.carry(now, vec![0; 98])[0]
                    .as_ref()
                    .expect("nothing is lost")
                    .0
                    - now
            })
            .collect();
        delays.sort_unstable();
        let below = |all: &[u64], most: u64| {
            all.partition_point(|each| *each <= most) as f64 / all.len() as f64
        };
        for most in &table {
            let (found, share) = (below(&delays, *most), below(&table, *most));
            assert!(
                (found - share).abs() < furthest,
                "{found} up to {most} ns, not {share}"
            );
        }
        assert!(delays
            .iter()
            .all(|delay| table.binary_search(delay).is_ok()));
    });
}

/// Gilbert's and Elliott's model: the shares of both states, their mean lengths, and the loss in each. What is lost in no
/// state tells nothing of the state, so the two losses are 1 and 0 where lengths are counted.
#[test]
fn both_states_of_a_bursty_loss_have_their_lengths_and_their_losses() {
    const COUNT: usize = 400_000;
    let lost = |spares: u64, between: u64| {
        let mut wire = Wire::new(Settings {
            burst_begins: ALL / 72,
            burst_ends: ALL / 8,
            burst_spares: spares,
            between_bursts: between,
            seed: Some(11),
            ..Settings::default()
        });
        let lost = |at| wire.carry(at, vec![0; 98])[0].is_none();
        (0..COUNT as u64).map(lost).collect::<Vec<bool>>()
    };
    let share = |lost: &[bool]| lost.iter().filter(|&&each| each).count() as f64 / COUNT as f64;
    let runs = lost(0, 0);
    let begun = runs.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    assert!((share(&runs) - 0.1).abs() < 0.005);
    assert!((share(&runs) * COUNT as f64 / begun - 8.0).abs() < 0.4);
    assert!(((1.0 - share(&runs)) * COUNT as f64 / begun - 72.0).abs() < 3.6);
    // A tenth of all in bursts, of which a quarter is spared; of the others a fiftieth is lost.
    let found = share(&lost(ALL / 4, ALL / 50));
    assert!((found - (0.1 * 0.75 + 0.9 * 0.02)).abs() < 0.005, "{found}");
    assert!((share(&lost(ALL, 0)), share(&lost(0, ALL))) == (0.0, 1.0));
}

/// As one that has never been anything else, once what it was sent before has arrived: its random numbers, its bursts, and
/// the slot that its frames wait for.
#[test]
fn a_link_that_is_set_anew_begins_anew() {
    for_all(|chance| {
        let (mut wire, settings) = (Wire::new(any(chance)), any(chance));
        let (mut free, mut last) = (0, 0);
        for Sent { now, frame, .. } in sent(chance, 0) {
            let arrivals = wire.carry(now, frame);
            last = arrivals
                .iter()
                .flatten()
                .fold(last, |last, one| last.max(one.0));
            free = now;
        }
        if wire.settings().rate_bps.is_some() {
            free += 1 << 50; // nanoseconds: sixty frames have left, even at a bit a second
        }
        free = free.max(last);
        wire.set(free, settings.clone(), HashMap::new());
        let mut fresh = Wire::new(settings);
        for Sent { now, frame, .. } in sent(chance, free) {
            let (one, other): (Arrivals, Arrivals) =
                (wire.carry(now, frame.clone()), fresh.carry(now, frame));
            assert_eq!(one, other);
        }
    });
}

#[test]
fn the_same_seed_does_the_same_and_another_something_else() {
    let lost = |seed: u64| {
        let mut wire = Wire::new(Settings {
            loss: ALL / 2,
            seed: Some(seed),
            ..Settings::default()
        });
        let lost = |now| wire.carry(now, vec![0; 60])[0].is_none();
        (0..64).map(lost).collect::<Vec<bool>>()
    };
    for_all(|chance| {
        let (one, other) = (chance.next(), chance.next());
        assert_eq!(lost(one), lost(one));
        assert_ne!(lost(one), lost(other));
    });
}

/// What is under way has its room, and gives it back; so much there is for each, however it was used before.
#[test]
fn room_under_way_is_bounded_and_comes_back() {
    for_all(|chance| {
        let wire = Wire::new(Settings {
            rate_bps: None,
            ..any(chance)
        });
        let host = Default::default();
        let ports: Vec<UnderWay> = (0..3).map(|_| UnderWay::of_port(&host)).collect();
        let (mut held, mut bytes) = (Vec::new(), 0);
        for _ in 0..chance.below(400) {
            let port = chance.below(3) as usize;
            let length = chance.pick(&[14, 1514, 65_000, 4 << 20]) as usize;
            match ports[port].hold(length, &wire) {
                Some(one) => {
                    held.push((length + FRAME_OVERHEAD, one));
                    bytes += length + FRAME_OVERHEAD;
                }
                None => assert!(bytes + length + FRAME_OVERHEAD > WITHOUT_A_RATE),
            }
            assert!(bytes <= WITHOUT_A_RATE + 3 * EVERY_PORT);
            if chance.one_in(3) && !held.is_empty() {
                let at = chance.below(held.len() as u64) as usize;
                bytes -= held.swap_remove(at).0;
            }
        }
        drop(held);
        assert!(ports[0]
            .hold(WITHOUT_A_RATE - FRAME_OVERHEAD, &wire)
            .is_some());
    });
}
