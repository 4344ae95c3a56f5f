//! One kernel on the clock: what it asked for, what comes to it, and whose turn it is.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

use crate::calendar::{Calendar, Message, Note, Op, NOTES};
use crate::device::{Delivery, Device};
use crate::frames::{FromHost, ToHost};
use crate::orders::Processor;
use crate::socket;

/// No kernel means a time so far away: it sleeps until something comes.
const NEVER: u64 = i64::MAX as u64 / 2;
pub const CONSOLE: usize = 0;
/// How many frames may wait for a modelled processor, as in a kernel's net.core.netdev_max_backlog.
const BACKLOG_FRAMES: u64 = 1000;

/// A frame on its way to a host. Equal times are ordered by where it comes from, so that no run differs from another.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrival {
    pub time: u64,
    /// (host, port) that sent it, and the how manieth of that port's it is.
    pub origin: (usize, usize, u64),
    pub port: usize,
    /// Whether a modelled processor has had it already.
    pub processed: bool,
    pub frame: Vec<u8>,
}

impl Ord for Arrival {
    fn cmp(&self, other: &Arrival) -> Ordering {
        (self.time, self.origin).cmp(&(other.time, other.origin))
    }
}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Arrival) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its process has been started and has not yet reported.
    Starting,
    /// It has reported and waits for its first turn; the message is answered then.
    Fresh(Message),
    Waiting,
    Running,
}

/// What a host did when it was given the chance.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// It has a turn now, and will say when it is over.
    Busy,
    /// Nothing happens on it before the end of the window.
    Idle,
}

pub struct Host {
    pub state: State,
    pub line: OwnedFd,
    pub said: FromHost,
    pub asked: ToHost,
    /// Of the console: what clients said and the host has not got yet.
    pub typed: Vec<u8>,
    /// When `typed` is to be given to it.
    pub typed_at: Option<u64>,
    pub devices: Vec<Device>,
    pub now: u64,
    /// Which host and port sent each frame that found no room here since somebody asked.
    pub overrun: Vec<(usize, usize)>,
    calendar: Calendar,
    started: u64,
    request: Option<u64>,
    /// Which devices have input for its next turn, a bit each.
    calls: u64,
    arrivals: BinaryHeap<Reverse<Arrival>>,
    /// What comes within its turn, and it knows of already.
    due: Vec<Note>,
    processor: Option<Processor>,
    processor_free: u64,
    turn_began: Instant,
    /// Since when no time passes for it.
    paused_at: Option<u64>,
}

impl Host {
    pub fn new(
        calendar: OwnedFd,
        line: OwnedFd,
        devices: Vec<Device>,
        processor: Option<Processor>,
        now: u64,
    ) -> io::Result<Host> {
        Ok(Host {
            state: State::Starting,
            line,
            said: FromHost::default(),
            asked: ToHost::default(),
            typed: Vec::new(),
            typed_at: None,
            devices,
            now,
            overrun: Vec::new(),
            calendar: Calendar::new(calendar)?,
            started: now,
            request: None,
            calls: 0,
            arrivals: BinaryHeap::new(),
            due: Vec::new(),
            processor,
            processor_free: 0,
            turn_began: Instant::now(),
            paused_at: None,
        })
    }

    pub fn calendar_fd(&self) -> &OwnedFd {
        self.calendar.fd()
    }

    /// No time passes for it from `now` on; what it is sent waits. False when it is not up.
    pub fn pause(&mut self, now: u64) -> bool {
        let up = !self.is_booting() && self.state == State::Waiting;
        if up {
            self.paused_at.get_or_insert(now);
        }
        up
    }

    /// It goes on, and does not know that it has stood still. What has come meanwhile comes now, as far as there is room.
    pub fn go_on(&mut self, now: u64) {
        let Some(since) = self.paused_at.take() else { return };
        let passed = now - since;
        self.calendar.fall_behind(passed);
        self.request = self.request.map(|request| request.saturating_add(passed));
        self.processor_free = self.processor_free.max(now);
        let came = std::mem::take(&mut self.arrivals);
        self.arrivals = came.into_iter().map(|Reverse(one)| Reverse(Arrival { time: one.time.max(now), ..one })).collect();
    }

    /// When it next has something to do.
    pub fn next(&self) -> Option<u64> {
        if self.paused_at.is_some() {
            return None;
        }
        let arrival = self.arrivals.peek().map(|first| first.0.time);
        [self.request, arrival, self.typed_at].into_iter().flatten().min()
    }

    pub fn is_busy(&self) -> bool {
        self.state == State::Running
    }

    /// Whether it comes up, and time has to pass for it to go on.
    pub fn is_booting(&self) -> bool {
        !self.said.greeted()
    }

    /// How long its boot has lasted at `now`; 0 when it is up.
    pub fn boots_since(&self, now: u64) -> u64 {
        if self.is_booting() { now.saturating_sub(self.started) } else { 0 }
    }

    /// How long its turn has lasted by this machine's time; 0 when it has none.
    pub fn turn_lasts_s(&self) -> u64 {
        if self.is_busy() { self.turn_began.elapsed().as_secs() } else { 0 }
    }

    pub fn expect(&mut self, arrival: Arrival) {
        self.arrivals.push(Reverse(arrival));
    }

    /// Frames that leave wait for the host's processor first. Returns when one does; None if too many wait.
    pub fn process(&mut self, time: u64, bytes: usize) -> Option<u64> {
        let Some(processor) = &self.processor else { return Some(time) };
        let start = self.processor_free.max(time);
        if start - time > BACKLOG_FRAMES * processor.frame_ns.max(1) {
            return None;
        }
        self.processor_free = start + processor.cost_ns(bytes);
        Some(self.processor_free)
    }

    /// Let it do what comes next, if that is before `end`.
    pub fn step(&mut self, end: u64) -> io::Result<Step> {
        loop {
            let Some(next) = self.next().filter(|next| *next < end) else { return Ok(Step::Idle) };
            if self.due(next) {
                self.take_in(next)?;
                continue;
            }
            self.run(next, end)?;
            return Ok(Step::Busy);
        }
    }

    /// Read one message of the kernel's calendar. None when it has ended, else whether it has begun to wait. One that
    /// reports has its first turn at `earliest`.
    pub fn hear(&mut self, epoch_ns: u64, earliest: u64) -> io::Result<Option<bool>> {
        let Some(message) = self.calendar.receive()? else { return Ok(None) };
        match message.op {
            Op::Ack => return Ok(Some(false)),
            Op::Start => {
                self.state = State::Fresh(message);
                self.now = earliest;
                self.request = Some(earliest);
                return Ok(Some(true));
            }
            Op::Wait => {
                self.now = self.calendar.time();
                self.request = self.calendar.request().filter(|request| *request < NEVER);
                self.state = State::Waiting;
                self.give_what_is_left()?;
                return Ok(Some(true));
            }
            Op::GetTimeOfDay => self.calendar.ack(&message, epoch_ns + self.calendar.own_time())?,
            Op::Run | Op::FreeUntil | Op::Broadcast => self.calendar.ack(&message, 0)?,
            Op::Request | Op::Get | Op::Update => {
                return Err(io::Error::other("a kernel that does not share its page"));
            }
        }
        Ok(Some(false))
    }

    /// What it has sent since it was last asked, in the order in which it did: when, by which device, and what.
    pub fn take_sent(&mut self) -> io::Result<Vec<(u64, usize, Vec<u8>)>> {
        let mut sent = Vec::new();
        for Note { time, device, index } in self.calendar.take_sent() {
            let Some(from) = self.devices.get_mut(device) else { continue };
            for piece in from.take_output(Some(index))? {
                sent.push((time, device, piece));
            }
        }
        Ok(sent)
    }

    /// The time to which it has come within its turn.
    pub fn time(&mut self) -> u64 {
        self.now = self.calendar.time().max(self.now);
        self.now
    }

    pub fn say(&self, bytes: &[u8]) -> io::Result<()> {
        socket::write_whole(self.line.as_raw_fd(), bytes)
    }

    /// Whether something is to be taken in at `time`.
    fn due(&self, time: u64) -> bool {
        self.arrivals.peek().is_some_and(|first| first.0.time <= time) || self.typed_at.is_some_and(|at| at <= time)
    }

    /// Take in what comes at `time`.
    fn take_in(&mut self, time: u64) -> io::Result<()> {
        self.now = time;
        while self.arrivals.peek().is_some_and(|first| first.0.time <= time) {
            let Reverse(mut arrival) = self.arrivals.pop().expect("it was there");
            if self.processor.is_some() && !arrival.processed {
                match self.process(time, arrival.frame.len()) {
                    Some(done) => {
                        arrival.time = done.max(time + 1);
                        arrival.processed = true;
                        self.arrivals.push(Reverse(arrival));
                    }
                    None => self.overrun.push((arrival.origin.0, arrival.origin.1)),
                }
                continue;
            }
            match self.devices[arrival.port].put_input(&arrival.frame)?.0 {
                Delivery::NoRoom => self.overrun.push((arrival.origin.0, arrival.origin.1)),
                Delivery::Silent => {}
                Delivery::Call => self.called(arrival.port, time),
            }
        }
        if self.typed_at.take().is_some() {
            let (delivery, taken) = self.devices[CONSOLE].put_input(&self.typed)?;
            self.typed.drain(..taken);
            if delivery == Delivery::Call {
                self.called(CONSOLE, time);
            }
        }
        Ok(())
    }

    /// When its turn begins, at `time`, the kernel is told that the device has input.
    fn called(&mut self, device: usize, time: u64) {
        self.calls |= 1 << device;
        self.request = Some(time);
    }

    fn run(&mut self, time: u64, end: u64) -> io::Result<()> {
        self.request = None;
        self.now = time;
        self.turn_began = Instant::now();
        if let State::Fresh(message) = self.state {
            self.started = time;
            self.state = State::Running;
            return self.calendar.welcome(&message, time);
        }
        self.state = State::Running;
        self.note_what_comes_before(end)?;
        let until = self.next().map_or(end, |next| next.min(end));
        self.calendar.run(time, time - self.started, until, std::mem::take(&mut self.calls), &self.due)
    }

    /// Frames that come before `end`, and before anything else does, are given to the kernel with its turn. It looks at each
    /// when its time has come. Where frames wait for a modelled processor, what is sent meanwhile decides when that is.
    fn note_what_comes_before(&mut self, end: u64) -> io::Result<()> {
        self.due.clear();
        if self.processor.is_some() {
            return Ok(());
        }
        let end = self.typed_at.map_or(end, |at| at.min(end));
        while let Some(Reverse(first)) = self.arrivals.peek().filter(|first| first.0.time < end) {
            if self.due.len() == NOTES {
                break;
            }
            let Some(index) = self.devices[first.port].put_ahead(&first.frame)? else { break };
            self.due.push(Note { time: first.time, device: first.port, index });
            self.arrivals.pop();
        }
        Ok(())
    }

    /// What came in its turn, and the kernel had its interrupts off, comes with its next one.
    fn give_what_is_left(&mut self) -> io::Result<()> {
        for note in &self.due[self.calendar.taken().min(self.due.len())..] {
            self.devices[note.device].publish()?;
            self.calls |= 1 << note.device;
        }
        self.due.clear();
        Ok(())
    }
}
