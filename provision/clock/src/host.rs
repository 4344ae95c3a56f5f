//! One host's kernel on the clock: its state, its turns, and what it says of its time.
//!
//! All times are nanoseconds of the lab's clock, unless their names or types say otherwise. How frames and input come to the
//! kernel is in delivery.rs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

use crate::calendar::{lie, Calendar, Message, Op};
use crate::course::{self, Course};
use crate::delivery::{Arrival, Full};
use crate::device::Device;
use crate::frames::{FromAgent, Input, ToAgent};
use crate::orders::Processor;
use crate::page::Note;
use crate::rings::QUEUE_SIZE;
use crate::socket::{Outbox, Received};
use crate::storm;
use crate::trunk::Seats;
use crate::turn::{self, Turn};

/// A kernel that asks to run at this time or later asks for none: it sleeps until something comes.
const NEVER: u64 = i64::MAX as u64 / 2;
/// The console's number among a host's devices. The device of port N has the number N + 1.
pub const CONSOLE: usize = 0;
/// How many turns a host may have in one window. An honest kernel runs by itself as far as its turn lasts, and needs one or
/// two; one that takes so many keeps the others from theirs.
const TURNS_IN_A_WINDOW: u64 = 10_000;
/// How many turns more a host may have in a window for each frame or input that comes to it there.
pub const TURNS_FOR_EACH: u64 = 4;
/// How many messages a kernel may send while it has no turn. An honest one sends few, and waits.
const MESSAGES_WITHOUT_A_TURN: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The kernel's process has been started and has not reported yet.
    Starting,
    /// The kernel has reported by this message, and waits for its first turn, with which the message is answered.
    Fresh(Message),
    /// The kernel waits for a turn.
    Waiting,
    /// The kernel has a turn.
    Running,
}

/// What came of a host that was allowed to run.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The host has a turn now. Its kernel will send a message when the turn is over.
    Busy,
    /// Nothing happens on the host before the end of the window.
    Idle,
}

pub struct Host {
    pub state: State,
    /// The control line, at whose other end is the supervisor.
    pub line: OwnedFd,
    /// Output of the console that the supervisor has not read yet.
    pub unread: Outbox,
    /// Whether the kernel waits, within its turn, until the supervisor has read its output.
    pub waits_for_reader: bool,
    /// The agent's frames in the console's output.
    pub from_agent: FromAgent,
    /// The clients' frames on the control line.
    pub to_agent: ToAgent,
    pub input: Input,
    /// When the console gets what is released of `input`; None: not yet.
    pub input_at: Option<u64>,
    /// The console, then the ports' cards.
    pub devices: Vec<Device>,
    /// How far the host has come.
    pub now: u64,
    /// The (host, port) that sent each frame for which this host had no room, until somebody counts them.
    pub overrun: Vec<(usize, usize)>,
    /// Which devices have input for the kernel's next turn, one bit each.
    pub calls: u64,
    /// Which devices have other settings than the kernel knows of, one bit each.
    pub changed: u64,
    /// When the kernel asked to run next.
    pub request: Option<u64>,
    /// Frames on their way to the host.
    pub arrivals: BinaryHeap<Reverse<Arrival>>,
    /// By device, the frames that found the kernel's buffers full.
    pub full: Vec<Full>,
    /// When it is tried again whether the kernel has made room. While something waits for that, the kernel's turns last no
    /// longer than a moment.
    pub retry_at: Option<u64>,
    /// When the host was last resumed. Frames that came while it was paused find room or are lost; they do not wait.
    pub resumed_at: Option<u64>,
    /// Frames that come within the kernel's turn, and lie in its buffers since the turn began.
    pub due: Vec<Note>,
    pub processor: Option<Processor>,
    /// When the modelled processor has done with the frames that it has taken so far.
    pub processor_free: u64,
    pub calendar: Calendar,
    /// What comes to it and from it is entered here.
    pub course: course::Shared,
    /// What it knows of frames that go round.
    pub watch: storm::Watch,
    /// The hosts that share its kernel; none where it has cards for ports of its own.
    pub seats: Seats,
    /// How many turns the host may still have in its window.
    pub turns_left: u64,
    /// When the kernel was started, and then when its first turn began: its own time counts from there.
    started_at: u64,
    /// When its turn began, by this machine's clock.
    turn_began: Instant,
    /// What has passed of its turn, or since the kernel last waited for somebody else.
    passed: Turn,
    /// The kernel's process; None: nobody has told.
    pub process: Option<libc::pid_t>,
    /// From when to when it may act in its turn.
    turn: (u64, u64),
    /// The end of the window that `turns_left` belongs to.
    window: u64,
    /// The greatest number of a channel that a client has begun a command on.
    pub last_channel: u32,
    /// How many messages the kernel has sent since it last had a turn.
    unasked: u64,
    /// When the host was paused; None: it is not.
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
            from_agent: FromAgent::default(),
            to_agent: ToAgent::default(),
            input: Input::default(),
            input_at: None,
            devices,
            now,
            overrun: Vec::new(),
            calls: 0,
            changed: 0,
            request: None,
            arrivals: BinaryHeap::new(),
            full,
            retry_at: None,
            resumed_at: None,
            due: Vec::new(),
            processor,
            processor_free: 0,
            calendar: Calendar::new(calendar)?,
            course: Course::new(&course::Order::default(), None).of(0),
            watch: storm::Watch::new(0, storm::Shared::default()),
            seats: Seats::default(),
            turns_left: 0,
            started_at: now,
            turn_began: Instant::now(),
            passed: Turn::default(),
            process: None,
            turn: (now, now),
            window: 0,
            last_channel: 0,
            unasked: 0,
            paused_at: None,
        })
    }

    /// Another kernel, which has been this one until now, is this host's from now on.
    pub fn serve_another(
        &mut self,
        line: OwnedFd,
        calendar: Calendar,
        sockets: Vec<OwnedFd>,
        memory: &OwnedFd,
        process: libc::pid_t,
    ) -> io::Result<()> {
        for (device, socket) in self.devices.iter_mut().zip(sockets) {
            device.serve_another(socket, memory)?;
        }
        self.calendar = calendar;
        self.line = line;
        self.process = Some(process);
        // Its reader hears what comes from now on, and whoever wrote half a frame to the old one does not write here.
        self.unread = Outbox::default();
        self.unread
            .send(self.line.as_raw_fd(), &self.from_agent.begun())?;
        self.to_agent = ToAgent::default();
        Ok(())
    }

    pub fn calendar_fd(&self) -> &OwnedFd {
        self.calendar.fd()
    }

    /// Pause the host: from `now` on no time passes for it, and what is sent to it waits. False if it has not come up.
    pub fn pause(&mut self, now: u64) -> bool {
        let up = !self.is_booting() && self.state == State::Waiting;
        if up {
            self.paused_at.get_or_insert(now);
        }
        up
    }

    /// End the host's pause, if it has one. Its kernel does not notice that time has passed. What was sent to the host
    /// meanwhile comes now, as far as there is room.
    pub fn resume(&mut self, now: u64) {
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

    /// When the host next has something to do; None: nothing, or it is paused.
    pub fn next(&self) -> Option<u64> {
        if self.paused_at.is_some() {
            return None;
        }
        let arrival = self.arrivals.peek().map(|first| first.0.time);
        [self.request, arrival, self.input_at, self.retry_at]
            .into_iter()
            .flatten()
            .min()
    }

    pub fn is_busy(&self) -> bool {
        self.state == State::Running
    }

    /// Whether its kernel has not had a turn yet, and so has not asked for any of its devices' settings.
    pub fn is_new(&self) -> bool {
        matches!(self.state, State::Starting | State::Fresh(_))
    }

    /// Whether its agent has not greeted yet. Time has to pass until it does.
    pub fn is_booting(&self) -> bool {
        !self.from_agent.greeted()
    }

    /// How long its boot has lasted at `now`; 0 when it has come up.
    pub fn boots_since(&self, now: u64) -> u64 {
        if self.is_booting() {
            now.saturating_sub(self.started_at)
        } else {
            0
        }
    }

    /// How many seconds of this machine's clock its turn has lasted; 0 when it has none.
    pub fn turn_lasts_s(&self) -> u64 {
        if self.is_busy() {
            self.turn_began.elapsed().as_secs()
        } else {
            0
        }
    }

    /// A second of this machine's clock has passed. Returns why the kernel is to be ended, if its turn lasts too long.
    pub fn tick(&mut self, longest_s: u64) -> Option<String> {
        if !self.is_busy() {
            return None;
        }
        self.passed
            .tick(self.process.and_then(turn::used), longest_s)
    }

    /// The turn counts from now on, since the kernel has waited for somebody else.
    pub fn is_not_to_blame(&mut self) {
        self.passed = Turn::default();
    }

    pub fn is_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    /// Let the host do what comes next, if that is before `end`: what comes to it is delivered, or its kernel has a turn.
    pub fn step(&mut self, end: u64) -> io::Result<Step> {
        if self.window != end {
            self.window = end;
            self.turns_left = TURNS_IN_A_WINDOW;
        }
        loop {
            let Some(next) = self.next().filter(|next| *next < end) else {
                return Ok(Step::Idle);
            };
            if self.something_comes(next) {
                self.deliver(next)?;
                continue;
            }
            self.begin_turn(next, end)?;
            return Ok(Step::Busy);
        }
    }

    /// Read one message of the kernel's calendar, if there is one. True: the kernel waits for a turn now. One that has just
    /// been started may have its first turn at `earliest`.
    pub fn hear(&mut self, epoch_ns: u64, earliest: u64) -> io::Result<Received<bool>> {
        let message = match self.calendar.receive()? {
            Received::Nothing => return Ok(Received::Nothing),
            Received::Closed => return Ok(Received::Closed),
            Received::Some(message) => message,
        };
        match message.op {
            Op::Start => {
                if self.state != State::Starting {
                    return Err(lie("it reported that it starts, and has started already"));
                }
                self.state = State::Fresh(message);
                self.now = earliest;
                self.request = Some(earliest);
                return Ok(Received::Some(true));
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
                self.publish_untaken()?;
                if self.somebody_waits_for_room() {
                    self.retry_at = Some(self.now);
                }
                return Ok(Received::Some(true));
            }
            Op::Ack => self.count_message()?,
            Op::GetTimeOfDay => {
                self.count_message()?;
                self.calendar
                    .ack(&message, epoch_ns.saturating_add(self.calendar.own_time()))?;
            }
            Op::Run | Op::FreeUntil | Op::Broadcast | Op::Fork => {
                self.count_message()?;
                self.calendar.ack(&message, 0)?;
            }
            Op::Request | Op::Get | Op::Update => {
                return Err(lie("it does not share its page"));
            }
        }
        Ok(Received::Some(false))
    }

    /// Count a message of the kernel's: it may send as many as it likes within its turn, and few outside of it.
    pub fn count_message(&mut self) -> io::Result<()> {
        self.unasked = if self.is_busy() { 0 } else { self.unasked + 1 };
        if self.unasked > MESSAGES_WITHOUT_A_TURN {
            return Err(lie("it sends message after message, and has no turn"));
        }
        Ok(())
    }

    /// What the kernel has noted on its page since this was last called, in its order: when it sent frames, and by which card.
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

    /// The frames that a note is about. `taken` counts each device's frames, for all notes that are taken together.
    pub fn take_noted(&mut self, note: &Note, taken: &mut [usize]) -> io::Result<Vec<Vec<u8>>> {
        let pieces = self.devices[note.device]
            .rings
            .take_output(Some(note.index))?;
        taken[note.device] += pieces.len();
        if taken[note.device] > usize::from(QUEUE_SIZE) {
            return Err(lie("it noted more frames than its queue holds"));
        }
        Ok(pieces)
    }

    /// How far the kernel has come within its turn.
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

    /// Give the kernel a turn at `time`, which lasts until `end` or until something comes to it that it does not know of.
    fn begin_turn(&mut self, time: u64, end: u64) -> io::Result<()> {
        self.turns_left = self.turns_left.checked_sub(1).ok_or_else(|| {
            lie(format!(
                "it took {TURNS_IN_A_WINDOW} turns, and no time passed that others could have"
            ))
        })?;
        self.request = None;
        self.now = time;
        self.turn = (time, end);
        self.turn_began = Instant::now();
        self.passed = Turn::default();
        if let State::Fresh(message) = self.state {
            self.started_at = time;
            self.state = State::Running;
            return self.calendar.welcome(&message, time);
        }
        self.state = State::Running;
        // Frames that wait for room are tried again before anything else happens: as soon as the kernel has done what it does
        // at this time.
        let until = if self.somebody_waits_for_room() {
            self.due.clear();
            time
        } else {
            self.put_ahead(end)?;
            self.next().map_or(end, |next| next.min(end))
        };
        self.calendar.run(
            time,
            time - self.started_at,
            until,
            (
                std::mem::take(&mut self.calls),
                std::mem::take(&mut self.changed),
            ),
            &self.due,
        )
    }
}
