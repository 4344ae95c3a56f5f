//! One kernel on the clock: what it asked for, what comes to it, and whose turn it is.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use crate::calendar::{lie, Calendar, Message, Note, Op, NOTES};
use crate::device::{Delivery, Device, QUEUE_SIZE};
use crate::frames::{FromHost, ToHost};
use crate::orders::Processor;
use crate::socket::{Came, Outbox};
use crate::under_way::Held;

/// No kernel means a time so far away: it sleeps until something comes.
const NEVER: u64 = i64::MAX as u64 / 2;
pub const CONSOLE: usize = 0;
/// How many frames may wait for a modelled processor, as in a kernel's net.core.netdev_max_backlog.
const BACKLOG_FRAMES: u64 = 1000;

/// How many turns a host may take in one window, and how many more for each thing that comes to it there. A kernel goes on by
/// itself as far as it may, so it takes a turn or two: who takes so many wants others to have none.
const TURNS_IN_A_WINDOW: u64 = 10_000;
const TURNS_FOR_EACH: u64 = 4;
/// In how many of its turns a kernel may leave a port's full buffers as they are: it empties them when it is called, or a look
/// at the clock later where it had its interrupts off. One whose interface is down never does.
const TURNS_IN_VAIN: u32 = 16;
/// How many messages a kernel may send while it has no turn: it waits for one, then.
const MESSAGES_WITHOUT_A_TURN: u64 = 1000;

/// A frame on its way to a host. Equal times are ordered by where it comes from, so that no run differs from another.
#[derive(Debug)]
pub struct Arrival {
    pub time: u64,
    /// (host, port) that sent it, and the how manieth of that port's it is.
    pub origin: (usize, usize, u64),
    pub port: usize,
    /// Whether a modelled processor has had it already.
    pub processed: bool,
    pub frame: Vec<u8>,
    /// Its room, for as long as it is on its way.
    pub _held: Held,
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Arrival) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Arrival {}

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

/// What has come to a port whose buffers in the kernel were full. It waits there in its order, as behind a card with flow
/// control.
struct Full {
    waiting: VecDeque<Arrival>,
    /// In how many turns since it last took a frame the kernel has made no room.
    in_vain: u32,
    /// Whether the kernel has made none when it was called, or has never had any: it is not called, and nothing waits.
    takes_nothing: bool,
}

impl Default for Full {
    fn default() -> Full {
        Full {
            waiting: VecDeque::new(),
            in_vain: 0,
            takes_nothing: true,
        }
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
    /// What it has said and the supervisor has not read yet.
    pub unread: Outbox,
    /// Whether it waits within its turn for that to be read.
    pub waits_for_reader: bool,
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
    /// By device, what has come and found the kernel's buffers full.
    full: Vec<Full>,
    /// When it is tried again whether there is room. A kernel goes no further in time by itself while something waits.
    tried_at: Option<u64>,
    /// When it was last resumed. What came while it was paused comes as far as there is room, and does not wait.
    resumed_at: Option<u64>,
    /// What comes within its turn, and it knows of already.
    due: Vec<Note>,
    processor: Option<Processor>,
    processor_free: u64,
    turn_began: Instant,
    /// How many seconds the watchdog has seen pass since, or since somebody else was last waited for.
    ticks: u64,
    /// From when to when it may act in its turn.
    turn: (u64, u64),
    /// The end of the window that `turns_left` is of.
    window: u64,
    turns_left: u64,
    /// How many messages it has sent since it had a turn.
    unasked: u64,
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
        let full = devices.iter().map(|_| Full::default()).collect();
        Ok(Host {
            state: State::Starting,
            line,
            unread: Outbox::default(),
            waits_for_reader: false,
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
            full,
            tried_at: None,
            resumed_at: None,
            due: Vec::new(),
            processor,
            processor_free: 0,
            turn_began: Instant::now(),
            ticks: 0,
            turn: (now, now),
            window: 0,
            turns_left: 0,
            unasked: 0,
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
        let Some(since) = self.paused_at.take() else {
            return;
        };
        let passed = now - since;
        self.calendar.fall_behind(passed);
        self.request = self.request.map(|request| request.saturating_add(passed));
        self.processor_free = self.processor_free.max(now);
        self.resumed_at = Some(now);
        let came = std::mem::take(&mut self.arrivals);
        self.arrivals = came
            .into_iter()
            .map(|Reverse(one)| {
                Reverse(Arrival {
                    time: one.time.max(now),
                    ..one
                })
            })
            .collect();
    }

    /// When it next has something to do.
    pub fn next(&self) -> Option<u64> {
        if self.paused_at.is_some() {
            return None;
        }
        let arrival = self.arrivals.peek().map(|first| first.0.time);
        [self.request, arrival, self.typed_at, self.tried_at]
            .into_iter()
            .flatten()
            .min()
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
        if self.is_booting() {
            now.saturating_sub(self.started)
        } else {
            0
        }
    }

    /// How long its turn has lasted by this machine's time; 0 when it has none.
    pub fn turn_lasts_s(&self) -> u64 {
        if self.is_busy() {
            self.turn_began.elapsed().as_secs()
        } else {
            0
        }
    }

    /// A second has passed: how many have in its turn.
    pub fn tick(&mut self) -> u64 {
        self.ticks = if self.is_busy() { self.ticks + 1 } else { 0 };
        self.ticks
    }

    /// Somebody else whom it waited for has done something.
    pub fn is_not_to_blame(&mut self) {
        self.ticks = 0;
    }

    pub fn is_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    pub fn expect(&mut self, arrival: Arrival) {
        self.arrivals.push(Reverse(arrival));
    }

    /// Frames that leave wait for the host's processor first. Returns when one does; None if too many wait.
    pub fn process(&mut self, time: u64, bytes: usize) -> Option<u64> {
        let Some(processor) = &self.processor else {
            return Some(time);
        };
        let start = self.processor_free.max(time);
        if start - time > BACKLOG_FRAMES * processor.frame_ns.max(1) {
            return None;
        }
        self.processor_free = start + processor.cost_ns(bytes);
        Some(self.processor_free)
    }

    /// Let it do what comes next, if that is before `end`.
    pub fn step(&mut self, end: u64) -> io::Result<Step> {
        if self.window != end {
            self.window = end;
            self.turns_left = TURNS_IN_A_WINDOW;
        }
        loop {
            let Some(next) = self.next().filter(|next| *next < end) else {
                return Ok(Step::Idle);
            };
            if self.due(next) {
                self.take_in(next)?;
                continue;
            }
            self.run(next, end)?;
            return Ok(Step::Busy);
        }
    }

    /// Read one message of the kernel's calendar, if there is one: whether the kernel has begun to wait. One that reports
    /// has its first turn at `earliest`.
    pub fn hear(&mut self, epoch_ns: u64, earliest: u64) -> io::Result<Came<bool>> {
        let message = match self.calendar.receive()? {
            Came::Nothing => return Ok(Came::Nothing),
            Came::Gone => return Ok(Came::Gone),
            Came::Some(message) => message,
        };
        match message.op {
            Op::Start => {
                if self.state != State::Starting {
                    return Err(lie("it reported that it starts, and has started already"));
                }
                self.state = State::Fresh(message);
                self.now = earliest;
                self.request = Some(earliest);
                return Ok(Came::Some(true));
            }
            Op::Wait => {
                if !self.is_busy() {
                    return Err(lie("it ended a turn that it had not"));
                }
                self.now = self.time()?;
                self.request = self.calendar.request().filter(|request| *request < NEVER);
                if let Some(request) = self.request.filter(|request| *request < self.now) {
                    return Err(lie(format!(
                        "it asked for a time that has passed, by {} ns",
                        self.now - request
                    )));
                }
                self.state = State::Waiting;
                self.unasked = 0;
                self.give_what_is_left()?;
                if self.something_waits() {
                    self.tried_at = Some(self.now);
                }
                return Ok(Came::Some(true));
            }
            Op::Ack => self.speaks()?,
            Op::GetTimeOfDay => {
                self.speaks()?;
                self.calendar
                    .ack(&message, epoch_ns.saturating_add(self.calendar.own_time()))?;
            }
            Op::Run | Op::FreeUntil | Op::Broadcast => {
                self.speaks()?;
                self.calendar.ack(&message, 0)?;
            }
            Op::Request | Op::Get | Op::Update => {
                return Err(lie("it does not share its page"));
            }
        }
        Ok(Came::Some(false))
    }

    /// It sends a message: as many as it likes in its turn, and few without.
    pub fn speaks(&mut self) -> io::Result<()> {
        self.unasked = if self.is_busy() { 0 } else { self.unasked + 1 };
        if self.unasked > MESSAGES_WITHOUT_A_TURN {
            return Err(lie("it sends message after message, and has no turn"));
        }
        Ok(())
    }

    /// When and by which device it has sent something since it was last asked, in the order in which it did.
    pub fn take_notes(&mut self) -> io::Result<Vec<Note>> {
        let notes = self.calendar.take_sent()?;
        let (began, ends) = self.turn;
        for Note { time, device, .. } in &notes {
            if *device == CONSOLE || *device >= self.devices.len() {
                return Err(lie(format!(
                    "it noted a frame of a port that it has not, number {device}"
                )));
            }
            if !(began..=ends).contains(time) {
                return Err(lie("it noted a frame for a time that is not in its turn"));
            }
        }
        Ok(notes)
    }

    /// What a note is about; `taken` counts each device's for all notes of a turn.
    pub fn take_noted(&mut self, note: &Note, taken: &mut [usize]) -> io::Result<Vec<Vec<u8>>> {
        let pieces = self.devices[note.device].take_output(Some(note.index))?;
        taken[note.device] += pieces.len();
        if taken[note.device] > usize::from(QUEUE_SIZE) {
            return Err(lie("it noted more frames than its queue holds"));
        }
        Ok(pieces)
    }

    /// The time to which it has come within its turn.
    pub fn time(&self) -> io::Result<u64> {
        let (time, (began, ends)) = (self.calendar.time(), self.turn);
        if time < began {
            return Err(lie(format!("its time went back, by {} ns", began - time)));
        }
        if time > ends {
            return Err(lie(format!(
                "it went further than it might, by {} ns",
                time - ends
            )));
        }
        Ok(time)
    }

    /// Whether something is to be taken in at `time`.
    fn due(&self, time: u64) -> bool {
        let come = |at: Option<u64>| at.is_some_and(|at| at <= time);
        self.arrivals
            .peek()
            .is_some_and(|first| first.0.time <= time)
            || come(self.typed_at)
            || come(self.tried_at)
    }

    /// Take in what comes at `time`.
    fn take_in(&mut self, time: u64) -> io::Result<()> {
        self.now = time;
        if self.tried_at.take().is_some() {
            self.give_what_waits(time)?;
        }
        while self
            .arrivals
            .peek()
            .is_some_and(|first| first.0.time <= time)
        {
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
            self.take_in_frame(arrival, time)?;
        }
        if self.typed_at.take().is_some() {
            self.turns_left += TURNS_FOR_EACH;
            let (delivery, taken) = self.devices[CONSOLE].put_input(&self.typed)?;
            self.typed.drain(..taken);
            if delivery == Delivery::Call {
                self.called(CONSOLE, time);
            }
        }
        Ok(())
    }

    /// A frame goes into the kernel's buffers, or waits there for room behind those that do, or is lost.
    fn take_in_frame(&mut self, arrival: Arrival, time: u64) -> io::Result<()> {
        let port = arrival.port;
        if self.full[port].waiting.is_empty() {
            if self.give(&arrival, time)? {
                return Ok(());
            }
            if self.full[port].takes_nothing || self.resumed_at == Some(time) {
                self.overrun.push((arrival.origin.0, arrival.origin.1));
                return Ok(());
            }
            self.called(port, time);
        }
        self.turns_left += TURNS_FOR_EACH;
        self.full[port].waiting.push_back(arrival);
        Ok(())
    }

    /// Put a frame into the kernel's buffers; false if they have no room.
    fn give(&mut self, arrival: &Arrival, time: u64) -> io::Result<bool> {
        match self.devices[arrival.port].put_input(&arrival.frame)?.0 {
            Delivery::NoRoom => return Ok(false),
            Delivery::Silent => {}
            Delivery::Call => self.called(arrival.port, time),
        }
        self.full[arrival.port].takes_nothing = false;
        self.full[arrival.port].in_vain = 0;
        self.turns_left += TURNS_FOR_EACH;
        Ok(true)
    }

    /// After a turn: what waits for room goes where the kernel has made some, and is lost where it makes none.
    fn give_what_waits(&mut self, time: u64) -> io::Result<()> {
        for port in 0..self.full.len() {
            let before = self.full[port].waiting.len();
            while let Some(arrival) = self.full[port].waiting.pop_front() {
                if !self.give(&arrival, time)? {
                    self.full[port].waiting.push_front(arrival);
                    break;
                }
            }
            let full = &mut self.full[port];
            if full.waiting.is_empty() {
                continue;
            }
            full.in_vain += 1;
            if full.waiting.len() < before {
                self.called(port, time);
            } else if full.in_vain >= TURNS_IN_VAIN {
                full.takes_nothing = true;
                self.overrun.extend(
                    full.waiting
                        .drain(..)
                        .map(|one| (one.origin.0, one.origin.1)),
                );
            }
        }
        Ok(())
    }

    fn something_waits(&self) -> bool {
        self.full.iter().any(|port| !port.waiting.is_empty())
    }

    /// When its turn begins, at `time`, the kernel is told that the device has input.
    fn called(&mut self, device: usize, time: u64) {
        self.calls |= 1 << device;
        self.request = Some(time);
    }

    fn run(&mut self, time: u64, end: u64) -> io::Result<()> {
        self.turns_left = self.turns_left.checked_sub(1).ok_or_else(|| {
            lie(format!(
                "it took {TURNS_IN_A_WINDOW} turns, and no time passed that others could have"
            ))
        })?;
        self.request = None;
        self.now = time;
        self.turn = (time, end);
        self.turn_began = Instant::now();
        self.ticks = 0;
        if let State::Fresh(message) = self.state {
            self.started = time;
            self.state = State::Running;
            return self.calendar.welcome(&message, time);
        }
        self.state = State::Running;
        // What waits is to be there before anything else happens: as soon as the kernel has done what it does at this time.
        let until = if self.something_waits() {
            self.due.clear();
            time
        } else {
            self.note_what_comes_before(end)?;
            self.next().map_or(end, |next| next.min(end))
        };
        self.calendar.run(
            time,
            time - self.started,
            until,
            std::mem::take(&mut self.calls),
            &self.due,
        )
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
            let Some(index) = self.devices[first.port].put_ahead(&first.frame)? else {
                break;
            };
            self.due.push(Note {
                time: first.time,
                device: first.port,
                index,
            });
            self.full[first.port].takes_nothing = false;
            self.turns_left += TURNS_FOR_EACH;
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
