//! Who may run, and until when.
//!
//! Time goes on in *windows*. A window begins in the next moment in which anything happens, and lasts no longer than the
//! least time that a frame takes to another host. Within a window no host can hear of another, so all hosts that have
//! something to do may run side by side, and the result does not depend on which of them is faster (conservative
//! lookahead: Chandy and Misra, 1979).
//!
//! A *turn* is one host's permission to run, within one window. A host may have several turns in a window, and as many
//! hosts as `at_once` says have one at the same time. The window ends when no host has a turn or is ready for one.
//!
//! All times are nanoseconds of the lab's clock. What kernels send in their turns is in traffic.rs. No socket of a client or
//! of the supervisor is known here: those are the server's.

use std::io;
use std::time::Instant;

use crate::course::{self, Course, CourseState};
use crate::gate::Gate;
use crate::host::{Host, State, Step};
use crate::links::Links;
use crate::orders::{Captured, PortSettings, Topology};
use crate::storm::{self, Watch};
use crate::trunk::Seat;

/// How long a kernel may take until its agent greets, by the lab's time: 300 s.
const LONGEST_BOOT_NS: u64 = 300 * 1_000_000_000;
/// The length of a window while somebody sits at a terminal: what is typed comes to its host after the window.
const PACED_NS: u64 = 10_000_000;

/// A kernel that is no longer on the clock. Its sockets are open until this is dropped.
pub struct Ended {
    pub index: usize,
    pub host: Host,
    /// What the kernel did wrong; None if it ended by itself or was replaced.
    pub why: Option<io::Error>,
}

/// What an attempt to let time pass came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Time has passed. Hosts may have turns now.
    Passed,
    /// Time stands still until somebody says something: nobody waits for it to pass, or nothing is to happen.
    Stands,
    /// The lab keeps pace with this machine's clock, which has to go on for so many milliseconds first.
    TooEarly { left_ms: i32 },
}

pub struct Scheduler {
    /// The time of day at which the lab begins, in nanoseconds since 1970.
    pub epoch_ns: u64,
    pub topology: Topology,
    /// By number; None: its kernel does not run.
    pub hosts: Vec<Option<Host>>,
    pub links: Links,
    pub gate: Gate,
    pub course: Course,
    /// What goes round in loops of bridges.
    pub storms: storm::Shared,
    /// The lab's time. It never goes back.
    pub now: u64,
    /// The end of the window that time is in.
    pub window: Option<u64>,
    /// Kernels that have ended since somebody last took them from here.
    pub ended: Vec<Ended>,
    /// The frames that ports have sent since somebody last took them from here; None: nobody captures.
    pub captured: Option<Vec<Captured>>,
    /// Which hosts have been started at least once. Time begins when all have, so that each begins with it.
    started: Vec<bool>,
    /// Hosts that have something to do in this window and have no turn; the last one is the next to get one.
    ready: Vec<usize>,
    /// How many hosts may have a turn at the same time.
    at_once: usize,
    /// When the lab began to keep pace: by this machine's clock, and by the lab's.
    paced_since: Option<(Instant, u64)>,
}

impl Scheduler {
    pub fn new(epoch_ns: u64, at_once: usize, topology: Topology) -> io::Result<Scheduler> {
        let links = Links::new(&topology)?;
        let hosts = topology.hosts.iter().map(|_| None).collect();
        // Hosts that share a kernel are there with it.
        let hosts_within = topology.hosts.iter().map(|host| host.within.is_some());
        let started = hosts_within.collect();
        let mut course = Course::new(&course::Order::default(), None);
        course.has(topology.hosts.len());
        Ok(Scheduler {
            epoch_ns,
            topology,
            hosts,
            links,
            gate: Gate::default(),
            course,
            storms: storm::Shared::default(),
            now: 0,
            window: None,
            ended: Vec::new(),
            captured: None,
            started,
            ready: Vec::new(),
            at_once,
            paced_since: None,
        })
    }

    /// From now on, what passes is entered in that course.
    pub fn enter_in(&mut self, course: Course) {
        self.course = course;
        self.course.has(self.topology.hosts.len());
    }

    /// The course so far. Nobody may have a turn, and no window may be open.
    pub fn course_state(&self) -> CourseState {
        let hosts = self.topology.hosts.iter();
        let names: Vec<&str> = hosts.map(|host| host.name.as_str()).collect();
        self.course.state(self.now, &names)
    }

    pub fn somebody_has_a_turn(&self) -> bool {
        self.hosts.iter().flatten().any(Host::is_busy)
    }

    /// End the window. Nobody may have a turn.
    pub fn close_window(&mut self) {
        if let Some(end) = self.window.take() {
            self.now = self.now.max(end);
            self.storms.borrow_mut().window_ends(self.now);
        }
    }

    /// Let time pass to the next moment in which anything happens, and open a window there. `wakeup` is the next moment for
    /// which a client waits. Nobody may have a turn, and no window may be open.
    pub fn advance(&mut self, wakeup: Option<u64>) -> Progress {
        if !self.passes(wakeup.is_some()) {
            self.paced_since = None;
            return Progress::Stands;
        }
        self.release_input();
        let next = self.hosts.iter().flatten().filter_map(Host::next).min();
        let Some(soonest) = next.into_iter().chain(wakeup).min() else {
            return Progress::Stands;
        };
        let soonest = soonest.max(self.now);
        if let Some(left_ms) = self.pace(soonest) {
            return Progress::TooEarly { left_ms };
        }
        if wakeup == Some(soonest) {
            self.now = soonest;
        } else {
            self.open_window(soonest, wakeup);
        }
        Progress::Passed
    }

    /// Whether time may pass. `somebody_sleeps`: a client waits for a moment of the lab's clock.
    pub fn passes(&self, somebody_sleeps: bool) -> bool {
        let mut hosts = self.hosts.iter().flatten();
        let starting = hosts.any(|host| host.state == State::Starting);
        self.started.iter().all(|started| *started)
            && !starting
            && !self.gate.somebody_is_busy()
            && (self.somebody_boots() || self.gate.is_open() || somebody_sleeps)
    }

    fn somebody_boots(&self) -> bool {
        self.hosts.iter().flatten().any(Host::is_booting)
    }

    /// If a second of the lab has to take a second: how many milliseconds are left until `next` may come; None: it may come
    /// now.
    fn pace(&mut self, next: u64) -> Option<i32> {
        if !self.gate.is_paced() || self.somebody_boots() {
            self.paced_since = None;
            return None;
        }
        let (began, at) = *self.paced_since.get_or_insert((Instant::now(), self.now));
        let allowed = at + began.elapsed().as_nanos() as u64;
        if next <= allowed {
            return None;
        }
        self.now = self.now.max(allowed);
        Some((next - allowed).div_ceil(1_000_000).min(i32::MAX as u64) as i32)
    }

    /// Let each host have now what clients have sent it. Not while a host boots: time passes then without anybody having
    /// asked for it, and a client must not see how far.
    fn release_input(&mut self) {
        if self.somebody_boots() {
            return;
        }
        let now = self.now;
        let hosts = self.hosts.iter_mut().flatten();
        for host in hosts.filter(|host| host.from_agent.greeted()) {
            host.input.release();
            if !host.input.released().is_empty() {
                host.input_at = Some(now);
            }
        }
    }

    /// Open a window from `start` to where a host could hear of another, or a client is to act.
    fn open_window(&mut self, start: u64, wakeup: Option<u64>) {
        self.end_overdue_boots(start);
        self.course.window_begins(start);
        let longest = match self.gate.is_paced() {
            true => self.links.least_ns().min(PACED_NS),
            false => self.links.least_ns(),
        };
        let end = wakeup
            .unwrap_or(u64::MAX)
            .min(start.saturating_add(longest));
        self.window = Some(end);
        let has_something_to_do = |host: &Option<Host>| {
            let next = host.as_ref().and_then(Host::next);
            next.is_some_and(|next| next < end)
        };
        self.ready = (0..self.hosts.len())
            .filter(|index| has_something_to_do(&self.hosts[*index]))
            .collect();
        self.ready.reverse();
        self.give_turns();
    }

    fn end_overdue_boots(&mut self, now: u64) {
        for index in 0..self.hosts.len() {
            let host = self.hosts[index].as_ref();
            if host.is_some_and(|host| host.boots_since(now) > LONGEST_BOOT_NS) {
                self.remove(index, Some(io::Error::other("it does not come up")));
            }
        }
    }

    /// Let hosts that are ready run, as many at the same time as may.
    pub fn give_turns(&mut self) {
        let Some(end) = self.window else {
            return;
        };
        let hosts = self.hosts.iter().flatten();
        let mut busy = hosts.filter(|host| host.is_busy()).count();
        while busy < self.at_once {
            let Some(index) = self.ready.pop() else { break };
            let Some(host) = &mut self.hosts[index] else {
                continue;
            };
            let step = host.step(end);
            for from in std::mem::take(&mut host.overrun) {
                self.links.count_overrun(from);
            }
            match step {
                Ok(Step::Busy) => busy += 1,
                Ok(Step::Idle) => {}
                Err(error) => self.remove(index, Some(error)),
            }
        }
    }

    /// A host has ended its turn: it goes on with what comes next in the window, or another host does.
    pub fn end_turn(&mut self, index: usize) {
        if self.window.is_some() {
            self.ready.push(index);
        }
        self.give_turns();
    }

    /// A second of this machine's clock has passed. End each kernel whose turn lasts too long (turn.rs): it holds up all the
    /// others.
    pub fn tick(&mut self, longest_s: u64) {
        for index in 0..self.hosts.len() {
            let Some(host) = &mut self.hosts[index] else {
                continue;
            };
            let Some(mut why) = host.tick(longest_s) else {
                continue;
            };
            if host.waits_for_reader {
                why = format!("nobody has read its control line for {longest_s} s");
            }
            self.remove(index, Some(io::Error::other(why)));
        }
        self.give_turns();
    }

    /// Put a kernel that has just been started on the clock, in place of the host's earlier one.
    pub fn start(&mut self, index: usize, mut host: Host) {
        self.start_in_vain(index);
        host.course = self.course.of(index);
        host.watch = Watch::new(index, self.storms.clone());
        host.course.borrow_mut().started(self.now);
        self.seat(index, &mut host);
        self.links.set_carriers(index, &mut host, self.now);
        self.hosts[index] = Some(host);
    }

    /// Tell a kernel's host which hosts share the kernel.
    fn seat(&mut self, kernel: usize, host: &mut Host) {
        for (index, other) in self.topology.hosts.iter().enumerate() {
            let Some(within) = other.within.as_ref().filter(|one| one.kernel == kernel) else {
                continue;
            };
            for (port, tag) in within.tags.iter().enumerate() {
                let (of, course) = ((index, port), self.course.of(index));
                let watch = || Watch::new(index, self.storms.clone());
                host.seats.add(*tag, Seat { of, course }, watch);
            }
        }
    }

    /// A kernel has been started, and was lost: nobody waits for it.
    pub fn start_in_vain(&mut self, index: usize) {
        self.remove(index, None);
        self.started[index] = true;
    }

    /// Take a kernel off the clock that did what no kernel of ours does, and let others have its turn.
    pub fn fail(&mut self, index: usize, error: io::Error) {
        self.remove(index, Some(error));
        self.give_turns();
    }

    /// Take a kernel off the clock. What is on its way to it is lost.
    pub fn remove(&mut self, index: usize, why: Option<io::Error>) {
        let Some(host) = self.hosts[index].take() else {
            return;
        };
        // In its turn the lab's time is not known yet, but the turn's begin is.
        let time = if host.is_busy() { host.now } else { self.now };
        host.course.borrow_mut().ended(time);
        self.gate.forget_host(index);
        self.ended.push(Ended { index, host, why });
    }

    /// Pause a host, or let it go on. False if its kernel does not run or has not come up yet.
    pub fn pause(&mut self, index: usize, pauses: bool) -> bool {
        let Some(Some(host)) = self.hosts.get_mut(index) else {
            return false;
        };
        let was = host.is_paused();
        let done = match pauses {
            true => host.pause(self.now),
            false => {
                host.resume(self.now);
                true
            }
        };
        if host.is_paused() != was {
            host.course.borrow_mut().paused(self.now, pauses);
        }
        done
    }

    /// Replace the settings of some wires; see `Links::set`.
    pub fn set_wires(&mut self, wires: Vec<PortSettings>) -> Result<(), String> {
        let entries: Vec<_> = wires
            .iter()
            .map(|one| (one.host, one.port, serde_json::to_vec(&one.wire)))
            .collect();
        self.links.set(&mut self.hosts, self.now, wires)?;
        for (host, port, settings) in entries {
            let settings = settings.map_err(|error| error.to_string())?;
            let course = self.course.of(host);
            course.borrow_mut().set(self.now, port, &settings);
        }
        Ok(())
    }

    /// Replace hosts and links. A host whose ports change is taken off the clock; all hosts may be off when time goes on.
    pub fn set_topology(&mut self, topology: Topology) -> io::Result<()> {
        Links::new(&topology)?;
        for index in 0..self.hosts.len() {
            let ports = topology.hosts.get(index).map(|host| &host.ports);
            if ports != Some(&self.topology.hosts[index].ports) {
                self.remove(index, None);
            }
        }
        self.links.replace(&self.topology, &topology)?;
        self.hosts.resize_with(topology.hosts.len(), || None);
        self.course.has(topology.hosts.len());
        self.storms.borrow_mut().forget();
        self.started = vec![true; topology.hosts.len()];
        self.topology = topology;
        Ok(())
    }
}
