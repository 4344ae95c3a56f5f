//! A thread that looks whether turns, or the clock itself, take too long. No host can keep it busy.
//!
//! It counts the seconds that it has seen pass, so a turn is no longer for a machine that was stopped or asleep. While nobody has
//! a turn, the thread sleeps.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// How many seconds of a processor's time the clock may take to serve one message. All that it does for one is bounded, to
/// milliseconds. Should a kernel find a way around that, the clock ends with a message, instead of hanging.
const LONGEST_STEP_S: u64 = 30;
const STACK: usize = 64 << 10;
const NOBODY: usize = usize::MAX;

pub struct Watchdog {
    ticks: OwnedFd,
    thread: Thread,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Whether somebody has a turn.
    turns: AtomicBool,
    /// The number of the message that is served. It is odd; an even number: none is served.
    step: AtomicU64,
    /// The host whose message it is, or NOBODY.
    host: AtomicUsize,
    /// Whether the thread sleeps, or is about to.
    asleep: AtomicBool,
}

impl Watchdog {
    pub fn start() -> io::Result<Watchdog> {
        // SAFETY: eventfd(2) makes a descriptor that is nobody else's.
        let ticks = unsafe {
            match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
                -1 => return Err(io::Error::last_os_error()),
                number => OwnedFd::from_raw_fd(number),
            }
        };
        let mut clock: libc::clockid_t = 0;
        // SAFETY: this thread is there for as long as the process is.
        let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        let shared = Arc::new(Shared::default());
        let (its, told) = (shared.clone(), ticks.try_clone()?);
        let started = thread::Builder::new()
            .name("watchdog".into())
            .stack_size(STACK);
        let thread = started
            .spawn(move || watch(&its, &told, clock))?
            .thread()
            .clone();
        Ok(Watchdog {
            ticks,
            thread,
            shared,
        })
    }

    /// Readable once a second while somebody has a turn.
    pub fn fd(&self) -> &OwnedFd {
        &self.ticks
    }

    /// Whether a second has passed since this was last called.
    pub fn ticked(&self) -> bool {
        let mut count = [0u8; 8];
        // SAFETY: an eventfd gives eight bytes, or none.
        unsafe {
            libc::read(
                self.ticks.as_raw_fd(),
                count.as_mut_ptr().cast(),
                count.len(),
            ) == 8
        }
    }

    /// Say whether somebody has a turn.
    pub fn somebody_has_a_turn(&self, turns: bool) {
        if self.shared.turns.load(Ordering::Relaxed) != turns {
            self.shared.turns.store(turns, Ordering::SeqCst);
            self.wake();
        }
    }

    /// The clock begins to serve a message, of a host or of somebody else.
    pub fn step_begins(&self, host: Option<usize>) {
        self.shared
            .host
            .store(host.unwrap_or(NOBODY), Ordering::Relaxed);
        self.shared.step.store(
            (self.shared.step.load(Ordering::Relaxed) + 2) | 1,
            Ordering::SeqCst,
        );
        self.wake();
    }

    /// The clock has served the message, and waits for the next one.
    pub fn step_ends(&self) {
        self.shared.step.store(
            (self.shared.step.load(Ordering::Relaxed) + 1) & !1,
            Ordering::SeqCst,
        );
    }

    /// Wake the thread if it sleeps. Either the thread sees what has just been stored, or it is seen asleep here.
    fn wake(&self) {
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }
}

fn watch(shared: &Shared, ticks: &OwnedFd, clock: libc::clockid_t) {
    let (mut step, mut since_s) = (0, 0);
    loop {
        let turns = shared.turns.load(Ordering::Relaxed);
        let now = shared.step.load(Ordering::Relaxed);
        if now != step {
            (step, since_s) = (now, used_s(clock));
        } else if now & 1 == 1 && used_s(clock) - since_s > LONGEST_STEP_S {
            let host = shared.host.load(Ordering::Relaxed);
            let whose = if host == NOBODY {
                "nobody on the clock".into()
            } else {
                format!("host number {host}")
            };
            eprintln!(
                "clock: it has worked for {LONGEST_STEP_S} s on one message of {whose}; it ends"
            );
            std::process::abort();
        }
        if turns {
            // SAFETY: eight bytes, as an eventfd takes; one that is full already says enough.
            unsafe { libc::write(ticks.as_raw_fd(), 1u64.to_ne_bytes().as_ptr().cast(), 8) };
        } else if now & 1 == 0 {
            shared.asleep.store(true, Ordering::SeqCst);
            if !shared.turns.load(Ordering::SeqCst) && shared.step.load(Ordering::SeqCst) == now {
                thread::park();
            }
            shared.asleep.store(false, Ordering::SeqCst);
        }
        thread::sleep(SECOND);
    }
}

/// How many seconds of a processor's time a thread has used, by its clock.
fn used_s(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a clock of a thread that is there.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64
}
