//! How long a kernel's turn may last.
//!
//! It ends by itself once the kernel has done what there is to do, also where a program in the guest spins. So a kernel whose turn
//! lasts is stuck, or has much to do; and on a busy machine it waits for a processor meanwhile, for minutes. What counts is
//! therefore the processor time of the kernel's process. One that uses none is asleep, for what may never come.

use std::time::Duration;

/// How often as long as its processor time a turn may last by this machine's clock, whatever the kernel does: one that computes a
/// little now and then keeps the others from theirs, too.
const FARTHEST: u64 = 20;

/// What has passed of a turn. It is looked at once a second.
#[derive(Default)]
pub struct Turn {
    /// How many seconds of this machine's clock.
    ticks: u64,
    /// How many of them it is since the kernel's process has used any of a processor.
    still: u64,
    /// What the process had used when it was looked at first in this turn, and last; None: nobody knows.
    first: Option<Duration>,
    last: Option<Duration>,
}

impl Turn {
    /// A second has passed, and the process has used that much of a processor since its start. Returns why the kernel is to be
    /// ended, if it is: it may use `longest_s` seconds of a processor, and none for as long.
    pub fn tick(&mut self, used: Option<Duration>, longest_s: u64) -> Option<String> {
        self.ticks += 1;
        self.still = match used == self.last {
            true => self.still + 1,
            false => 0,
        };
        self.last = used;
        self.first = self.first.or(used);
        let spent = match (used, self.first) {
            (Some(used), Some(first)) => used.saturating_sub(first),
            _ => Duration::ZERO,
        };
        if spent > Duration::from_secs(longest_s) {
            Some(format!(
                "it has not ended its turn in {longest_s} s of a processor"
            ))
        } else if self.still > longest_s {
            Some(format!("it has not ended its turn for {longest_s} s"))
        } else if self.ticks > longest_s * FARTHEST {
            Some(format!(
                "it has not ended its turn for {} s",
                longest_s * FARTHEST
            ))
        } else {
            None
        }
    }
}

/// How much of a processor a process has used, with all its threads; None if it is not there. This needs no file of /proc, none of
/// which the clock may open.
pub fn used(process: libc::pid_t) -> Option<Duration> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a number, and room for a clock and for a time.
    let failed = unsafe {
        libc::clock_getcpuclockid(process, &mut clock) != 0
            || libc::clock_gettime(clock, &mut time) != 0
    };
    (!failed).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many seconds a kernel is ended that has used so many milliseconds of a processor in each of them, and why.
    fn ended(each_ms: impl Fn(u64) -> Option<u64>) -> (u64, String) {
        let (mut turn, mut used) = (Turn::default(), Duration::from_secs(1000));
        for second in 1.. {
            let now = each_ms(second).map(|ms| {
                used += Duration::from_millis(ms);
                used
            });
            if let Some(why) = turn.tick(now, 60) {
                return (second, why);
            }
        }
        unreachable!()
    }

    #[test]
    fn one_that_computes_is_ended_by_its_processor_time() {
        let (second, why) = ended(|_| Some(1000));
        assert_eq!(
            (second, &*why),
            (62, "it has not ended its turn in 60 s of a processor")
        );
    }

    #[test]
    fn one_that_hardly_gets_a_processor_goes_on() {
        // The lab of a suite's test that was ended after 20 minutes had got 2 %; it needed 20 s.
        assert_eq!(
            ended(|second| Some(if second % 10 == 0 { 200 } else { 0 })).0,
            60 * FARTHEST + 1
        );
        assert_eq!(ended(|_| Some(100)).0, 602);
    }

    #[test]
    fn one_that_sleeps_or_is_not_known_is_ended_by_the_time() {
        for each in [Some(0), None] {
            let (second, why) = ended(|_| each);
            assert!((60..=62).contains(&second), "{second}");
            assert_eq!(why, "it has not ended its turn for 60 s");
        }
        assert_eq!(ended(|second| Some(u64::from(second < 100))).0, 160);
    }

    #[test]
    fn a_process_says_what_it_has_used() {
        let own = std::process::id() as libc::pid_t;
        let before = used(own).unwrap();
        while used(own).unwrap() == before {
            std::hint::spin_loop();
        }
        // This one waits, and so uses nothing, whatever this process does.
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let its = child.id() as libc::pid_t;
        std::thread::sleep(Duration::from_millis(200));
        let first = used(its).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(used(its), Some(first));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(used(its), None);
    }
}
