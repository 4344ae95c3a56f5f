//! A trace of a link, after mahimahi (mm-link): moments at which so many bytes may be delivered. What no frame uses then is
//! lost.
//!
//! As in mahimahi's own program, an opportunity has 1504 bytes, and a packet takes those of its
//! IP packet and 4 more. Small packets share one, a large one takes several, and a frame that comes at an opportunity's own
//! moment is too late for it. Behind the last opportunity the trace begins again.

use std::rc::Rc;

use serde::{Deserialize, Deserializer};

/// The bytes of an opportunity, and those that each packet takes of them beside its own.
const OPPORTUNITY: u64 = 1504;
const BESIDE: u64 = 4;
const ETHERNET_HEADER: u64 = 14;
const NS_PER_MS: u64 = 1_000_000;
/// The latest opportunity of a trace, in milliseconds: a day.
const LATEST_MS: u64 = 86_400_000;
/// How many opportunities a trace has at the most, and how many runs.
const MOST: u64 = 1 << 32;
const MOST_RUNS: usize = 1 << 21;

/// Opportunities at one distance.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    first_ms: u64,
    apart_ms: u64,
    /// How many there are in each of its moments, and how many moments.
    at_once: u64,
    moments: u64,
    /// How many opportunities the trace has before it.
    before: u64,
}

/// As text: runs with a blank between them. `10` is an opportunity 10 ms after the one before, `10x3` are three together,
/// `10x3*100` a hundred times that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    runs: Rc<Vec<Run>>,
    /// How many opportunities there are until it begins again, and when that is, in nanoseconds.
    count: u64,
    period_ns: u64,
}

impl<'de> Deserialize<'de> for Trace {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Trace, D::Error> {
        let text = String::deserialize(from)?;
        Trace::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl Trace {
    pub fn parse(text: &str) -> Result<Trace, String> {
        let (mut runs, mut count, mut last_ms) = (Vec::new(), 0u64, 0u64);
        for word in text.split_ascii_whitespace() {
            let (apart_ms, at_once, moments) =
                numbers(word).ok_or_else(|| format!("{word:.40} is no run of a trace"))?;
            runs.push(Run {
                first_ms: last_ms + apart_ms,
                apart_ms,
                at_once,
                moments,
                before: count,
            });
            last_ms = last_ms.saturating_add(apart_ms.saturating_mul(moments));
            count = count.saturating_add(at_once.saturating_mul(moments));
            if last_ms > LATEST_MS || count > MOST || runs.len() > MOST_RUNS {
                return Err("a trace is longer than a day, or has too many opportunities".into());
            }
        }
        if last_ms == 0 {
            return Err("a trace lasts for some time".into());
        }
        Ok(Trace {
            runs: runs.into(),
            count,
            period_ns: last_ms * NS_PER_MS,
        })
    }

    /// How many bytes of opportunities a frame takes.
    pub fn cost(&self, frame_bytes: u64) -> u64 {
        frame_bytes.saturating_sub(ETHERNET_HEADER) + BESIDE
    }

    /// How many bytes the opportunities have had up to a moment, its own included: in nanoseconds after the trace has begun.
    pub fn passed(&self, elapsed_ns: u64) -> u64 {
        let (cycles, rest_ms) = (
            elapsed_ns / self.period_ns,
            elapsed_ns % self.period_ns / NS_PER_MS,
        );
        let runs = self.runs.partition_point(|run| run.first_ms <= rest_ms);
        let within = runs.checked_sub(1).map_or(0, |last| {
            let run = &self.runs[last];
            let moments = match (rest_ms - run.first_ms).checked_div(run.apart_ms) {
                Some(later) => (later + 1).min(run.moments),
                None => run.moments,
            };
            run.before + moments * run.at_once
        });
        (cycles * self.count + within) * OPPORTUNITY
    }

    /// When the opportunity comes in which that byte leaves, counted from 1: in nanoseconds after the trace has begun.
    pub fn moment_of(&self, byte: u64) -> u64 {
        let number = byte.saturating_sub(1) / OPPORTUNITY;
        let (cycles, within) = (number / self.count, number % self.count);
        let run = &self.runs[self.runs.partition_point(|run| run.before <= within) - 1];
        let moments = (within - run.before) / run.at_once;
        cycles * self.period_ns + (run.first_ms + moments * run.apart_ms) * NS_PER_MS
    }
}

/// `10x3*100`: 10, 3, 100.
fn numbers(word: &str) -> Option<(u64, u64, u64)> {
    let (word, moments) = word.split_once('*').unwrap_or((word, "1"));
    let (apart, at_once) = word.split_once('x').unwrap_or((word, "1"));
    let number = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() <= 10;
        digits.then(|| text.parse::<u64>().ok()).flatten()
    };
    let found = (number(apart)?, number(at_once)?, number(moments)?);
    (found.1 > 0 && found.2 > 0).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_come_when_the_runs_say() {
        let trace = Trace::parse("0 5x2*3 10").unwrap();
        let moments: Vec<u64> = (0..10)
            .map(|number| trace.moment_of(number * OPPORTUNITY + 1) / NS_PER_MS)
            .collect();
        assert_eq!(moments, [0, 5, 5, 10, 10, 15, 15, 25, 25, 30]);
        let passed = |ms: u64| trace.passed(ms * NS_PER_MS) / OPPORTUNITY;
        assert_eq!(
            [0, 4, 5, 14, 15, 24, 25, 29, 30].map(passed),
            [1, 1, 3, 5, 7, 7, 9, 9, 11]
        );
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        for wrong in [
            "",
            "0",
            "0*5",
            "1x0",
            "1*0",
            "-1",
            "1x",
            "a",
            "86400001",
            "1x4294967296*2",
            "1**2",
        ] {
            assert!(Trace::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Trace::parse("86400000").is_ok());
    }
}
