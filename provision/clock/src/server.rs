//! Serves the lab's kernels, its supervisor and its clients: one message of each that has one, then the next of each.
//!
//! The server owns all sockets and decides nothing about time: who may run, and until when, is the scheduler's to say. Here
//! are the supervisor's orders, and the hosts' control lines, by which clients' requests reach agents (input) and agents'
//! answers reach clients (output). What clients ask the clock itself is in clients.rs.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::sys::epoll::{EpollEvent, EpollFlags, EpollTimeout};

use crate::clients::Clients;
use crate::course::Course;
use crate::device::{Device, Kind};
use crate::frames;
use crate::host::{Host, CONSOLE};
use crate::orders::{self, Lost};
use crate::scheduler::{Ended, Progress, Scheduler};
use crate::socket::{self, Received};
use crate::sources::{Interest, Source, Sources};
use crate::traffic::Heard;
use crate::trunk::TRUNK_MAC;
use crate::watchdog::Watchdog;

/// The longest order of the supervisor's, in bytes.
const LONGEST_ORDER: usize = 1 << 16;
/// How many bytes are read at once.
pub const PIECE: usize = 1 << 16;
/// How many descriptors are served before time may pass again.
const EVENTS_AT_ONCE: usize = 64;
/// How many windows are opened before clients are heard again, where no kernel has anything to do in them.
const WINDOWS_AT_ONCE: usize = 64;

/// A kernel's start, as the supervisor counts them.
#[derive(Clone, Default)]
pub struct Start {
    /// The supervisor's number of it; 0: the host has not been started.
    pub number: u64,
    /// Why the clock has ended the kernel that was started then; None if it has not.
    pub lost: Option<String>,
}

pub struct Server {
    pub scheduler: Scheduler,
    pub sources: Sources,
    pub clients: Clients,
    /// Each host's last start.
    pub starts: Vec<Start>,
    pub listener: OwnedFd,
    pub control: OwnedFd,
    pub watchdog: Watchdog,
    longest_turn_s: u64,
}

impl Server {
    pub fn new(
        order: orders::Lab,
        course: Course,
        control: OwnedFd,
        listener: OwnedFd,
    ) -> io::Result<Server> {
        let at_once = match order.at_once {
            0 => std::thread::available_parallelism()?.get(),
            number => number,
        };
        let starts = vec![Start::default(); order.topology.hosts.len()];
        let mut scheduler = Scheduler::new(order.epoch_ns, at_once, order.topology)?;
        scheduler.enter_in(course);
        let mut server = Server {
            scheduler,
            sources: Sources::new()?,
            clients: Clients::default(),
            starts,
            listener,
            control,
            watchdog: Watchdog::start()?,
            longest_turn_s: order.longest_turn_s,
        };
        let Server {
            sources,
            control,
            listener,
            watchdog,
            ..
        } = &mut server;
        sources.add(control, Source::Control)?;
        sources.add(listener, Source::Listener)?;
        sources.add(watchdog.fd(), Source::Watchdog)?;
        Ok(server)
    }

    /// Serve until the supervisor ends.
    pub fn serve(mut self) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); EVENTS_AT_ONCE];
        loop {
            self.watchdog.step_begins(None);
            let timeout = self.advance()?;
            let timeout = self.accept_again(timeout)?;
            self.watchdog
                .somebody_has_a_turn(self.scheduler.somebody_has_a_turn());
            self.watchdog.step_ends();
            for event in self.sources.wait(&mut events, timeout)? {
                let fd = event.data() as RawFd;
                let Some(source) = self.sources.of(fd) else {
                    continue;
                };
                if !self.serve_one(fd, source, event.events())? {
                    return Ok(());
                }
                self.release_ended();
                self.tell_if_much_is_captured()?;
            }
        }
    }

    /// False when the supervisor has ended.
    fn serve_one(&mut self, fd: RawFd, source: Source, events: EpollFlags) -> io::Result<bool> {
        let host = match source {
            Source::Calendar(host) | Source::Line(host) | Source::Device(host, _) => Some(host),
            _ => None,
        };
        let has_room = events.contains(EpollFlags::EPOLLOUT);
        self.watchdog.step_begins(host);
        match source {
            Source::Control => return self.take_order(),
            Source::Listener => self.accept()?,
            Source::Watchdog => {
                if self.watchdog.ticked() {
                    self.scheduler.tick(self.longest_turn_s);
                }
            }
            Source::Client if has_room => self.flush_answers(fd)?,
            Source::Client => self.read_requests(fd)?,
            Source::Calendar(host) => self.scheduler.hear_calendar(host),
            Source::Line(host) if has_room => self.flush_output(host),
            Source::Line(host) => self.read_line(host),
            Source::Device(host, device) => self.hear_device(host, device),
        }
        Ok(true)
    }

    /// Let time pass as long as nobody has a turn. Returns how long to wait for the next message.
    fn advance(&mut self) -> io::Result<EpollTimeout> {
        for _ in 0..WINDOWS_AT_ONCE {
            if self.scheduler.somebody_has_a_turn() {
                return Ok(EpollTimeout::NONE);
            }
            self.scheduler.close_window();
            self.tell_captured()?;
            self.answer_requests()?;
            self.wake_sleepers()?;
            let progress = self.scheduler.advance(self.clients.next_wakeup());
            self.release_ended();
            match progress {
                Progress::Passed => {}
                Progress::Stands => return Ok(EpollTimeout::NONE),
                Progress::TooEarly { left_ms } => {
                    return Ok(EpollTimeout::try_from(left_ms).unwrap_or(EpollTimeout::MAX))
                }
            }
        }
        Ok(EpollTimeout::ZERO)
    }

    /// The supervisor has started a kernel, whose sockets come with the order. False when the supervisor has ended.
    ///
    /// Where this process may open no more files, or watch no more, that kernel is lost, and the others go on.
    fn take_order(&mut self) -> io::Result<bool> {
        let mut bytes = [0; LONGEST_ORDER];
        let (control, most) = (self.control.as_raw_fd(), socket::MOST_DESCRIPTORS);
        let came = match socket::read_with_descriptors(control, &mut bytes, most)? {
            Received::Nothing => return Ok(true),
            Received::Closed => return Ok(false),
            Received::Some(came) => came,
        };
        let order: orders::Start = serde_json::from_slice(&bytes[..came.bytes])?;
        if order.process.is_some() {
            if let Some(host) = &mut self.scheduler.hosts[order.host] {
                host.process = order.process;
            }
            return Ok(true);
        }
        self.starts[order.host] = Start {
            number: order.start,
            lost: None,
        };
        match came
            .descriptors
            .and_then(|descriptors| self.new_host(order.host, descriptors))
        {
            Ok(host) => self.scheduler.start(order.host, host),
            Err(error) => {
                self.scheduler.start_in_vain(order.host);
                self.report_lost(order.host, &error);
            }
        }
        Ok(true)
    }

    /// A host of the given number that has just been started. Its descriptors are its calendar, its control line, its
    /// console, and a card for each port.
    fn new_host(&mut self, index: usize, descriptors: Vec<OwnedFd>) -> io::Result<Host> {
        let spec = &self.scheduler.topology.hosts[index];
        let mut descriptors = descriptors.into_iter();
        let mut next = || {
            descriptors
                .next()
                .ok_or_else(|| io::Error::other("a host without its descriptors"))
        };
        let (calendar, line) = (next()?, next()?);
        let mut devices = vec![Device::new(Kind::Console, next()?)];
        if spec.trunk {
            let (mac, is_trunk) = (TRUNK_MAC, true);
            devices.push(Device::new(Kind::Network { mac, is_trunk }, next()?));
        }
        for port in &spec.ports {
            let (mac, is_trunk) = (parse_mac(port)?, false);
            devices.push(Device::new(Kind::Network { mac, is_trunk }, next()?));
        }
        let processor = spec.processor.clone();
        let host = Host::new(calendar, line, devices, processor, self.scheduler.now)?;
        if let Err(error) = self.watch(index, &host) {
            self.unwatch(&host);
            return Err(error);
        }
        Ok(host)
    }

    pub fn watch(&mut self, index: usize, host: &Host) -> io::Result<()> {
        self.sources
            .add(host.calendar_fd(), Source::Calendar(index))?;
        self.sources.add(&host.line, Source::Line(index))?;
        for (number, device) in host.devices.iter().enumerate() {
            self.sources
                .add(device.fd(), Source::Device(index, number))?;
        }
        Ok(())
    }

    fn unwatch(&mut self, host: &Host) {
        for fd in [host.calendar_fd(), &host.line] {
            self.sources.remove(fd);
        }
        for device in &host.devices {
            self.sources.remove(device.fd());
        }
    }

    /// Watch the sockets of kernels that have ended no longer, and tell the supervisor of those that the clock has ended.
    pub fn release_ended(&mut self) {
        for Ended { index, host, why } in std::mem::take(&mut self.scheduler.ended) {
            // Before the sockets are closed, so that whoever finds them closed can be told why.
            if let Some(error) = why {
                self.report_lost(index, &error);
            }
            self.unwatch(&host);
            drop(host);
            self.clients.something_was_closed();
        }
    }

    /// Tell the supervisor that the clock has ended a kernel. Not where the kernel was gone already when it was told something.
    fn report_lost(&mut self, index: usize, error: &io::Error) {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        if matches!(error.kind(), BrokenPipe | ConnectionReset) {
            return;
        }
        let why = error.to_string();
        let name = &self.scheduler.topology.hosts[index].name;
        eprintln!("{name}: {why}; it is no longer on the clock");
        let lost = Lost {
            host: index,
            start: self.starts[index].number,
            why: &why,
        };
        if let Ok(text) = serde_json::to_vec(&lost) {
            // It may have no room, which takes hundreds of unread reports. The kernel still finds its sockets closed.
            let _ = socket::write_some(self.control.as_raw_fd(), &text);
        }
        self.starts[index].lost = Some(why);
    }

    fn hear_device(&mut self, index: usize, device: usize) {
        match self.scheduler.hear_device(index, device) {
            Heard::Nothing => {}
            Heard::Closed => {
                if let Some(host) = &self.scheduler.hosts[index] {
                    self.sources.remove(host.devices[device].fd());
                }
            }
            Heard::Console => {
                if let Err(error) = self.write_output(index) {
                    self.scheduler.fail(index, error);
                }
            }
        }
    }

    /// Write what a host has put out on its console to its control line. The host goes on, within its turn, when all of it
    /// has been written.
    fn write_output(&mut self, index: usize) -> io::Result<()> {
        for piece in self.scheduler.take_console_output(index)? {
            self.scheduler.note_agent_frames(index, &piece)?;
            if let Some(host) = &mut self.scheduler.hosts[index] {
                host.unread.send(host.line.as_raw_fd(), &piece)?;
            }
        }
        let Some(host) = &mut self.scheduler.hosts[index] else {
            return Ok(());
        };
        host.waits_for_reader = host.unread.waiting() > 0;
        if host.waits_for_reader {
            return self
                .sources
                .set_interest(&host.line, Interest::InputAndRoom);
        }
        host.devices[CONSOLE].done()
    }

    /// The supervisor has read some of a host's output, so that more can be written.
    fn flush_output(&mut self, index: usize) {
        let Some(host) = &mut self.scheduler.hosts[index] else {
            return;
        };
        let sources = &self.sources;
        let flushed = (|| {
            if host.unread.flush(host.line.as_raw_fd())? {
                host.is_not_to_blame();
            }
            if host.unread.waiting() > 0 {
                return Ok(());
            }
            sources.set_interest(&host.line, Interest::Input)?;
            if std::mem::take(&mut host.waits_for_reader) {
                host.devices[CONSOLE].done()
            } else {
                Ok(())
            }
        })();
        if let Err(error) = flushed {
            self.scheduler.fail(index, error);
        }
    }

    /// Read what clients send to a host's agent.
    fn read_line(&mut self, index: usize) {
        let Some(host) = &mut self.scheduler.hosts[index] else {
            return;
        };
        let mut bytes = [0; PIECE];
        match socket::read_some(host.line.as_raw_fd(), &mut bytes) {
            Ok(Received::Nothing) => {}
            Ok(Received::Closed) => self.sources.remove(&host.line),
            Ok(Received::Some(count)) => self.take_input(index, &bytes[..count]),
            Err(error) => self.scheduler.fail(index, error),
        }
    }

    /// Keep for the host what is its agent's. The frames that say who waits for what are the clock's own.
    fn take_input(&mut self, index: usize, bytes: &[u8]) {
        let Scheduler { hosts, gate, .. } = &mut self.scheduler;
        let Some(host) = &mut hosts[index] else {
            return;
        };
        for (head, frame) in host.to_agent.feed(bytes) {
            let payload = &frame[frames::HEAD..];
            match head.kind {
                frames::WAIT => {
                    let turn = payload
                        .get(..8)
                        .map_or(0, |turn| u64::from_be_bytes(turn.try_into().unwrap()));
                    gate.wait(index, head.channel, turn, payload.get(8) == Some(&1));
                    host.input.belongs(head.channel, turn);
                    continue;
                }
                frames::PACE => {
                    gate.pace(index, head.channel);
                    continue;
                }
                frames::KILL => gate.forget(index, head.channel),
                frames::RUN | frames::RUN_WITHIN => {
                    host.last_channel = host.last_channel.max(head.channel);
                    gate.begin(index, head.channel);
                }
                _ => {}
            }
            host.input.hold(head.channel, frame);
        }
    }
}

fn parse_mac(text: &str) -> io::Result<[u8; 6]> {
    let bytes: Vec<u8> = text
        .split(':')
        .filter_map(|part| u8::from_str_radix(part, 16).ok())
        .collect();
    bytes
        .try_into()
        .map_err(|_| io::Error::other(format!("{text} is no MAC address")))
}
