//! The clock itself. Time goes on in *windows*: from the next moment in which anything happens to the least time that a
//! frame needs to another host. Within a window no host can hear of another, so all that have something to do run side
//! by side, and what comes out does not depend on which is faster (conservative lookahead: Chandy and Misra, 1979).

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::time::Instant;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::answers::{Client, Sleeper};
use crate::calendar::lie;
use crate::device::{Device, Event, Kind};
use crate::frames;
use crate::gate::Gate;
use crate::host::{Arrival, Host, State, Step, CONSOLE};
use crate::orders::{self, Layout, Lost, Question};
use crate::socket::{self, Came};
use crate::under_way::UnderWay;
use crate::watchdog::Watchdog;
use crate::wire::Wire;

const LONGEST_ORDER: usize = 1 << 16;
pub const PIECE: usize = 1 << 16;
/// So many windows are opened before clients are heard again, where no kernel has anything to do in them.
const WINDOWS_AT_ONCE: usize = 64;
/// How long a kernel may take until it greets, by the lab's time.
const LONGEST_BOOT_NS: u64 = 300 * 1_000_000_000;

#[derive(Clone, Copy)]
pub enum Source {
    Control,
    Listener,
    Watchdog,
    Client,
    Calendar(usize),
    Line(usize),
    Device(usize, usize),
}

pub struct Port {
    pub wire: Wire,
    /// Where it leads: the host and port at the other end.
    pub peer: (usize, usize),
    pub sent: u64,
    pub under_way: UnderWay,
}

pub struct Lab {
    epoch_ns: u64,
    longest_turn_s: u64,
    pub layout: Layout,
    pub epoll: Epoll,
    control: OwnedFd,
    pub listener: OwnedFd,
    pub sources: HashMap<RawFd, Source>,
    watchdog: Watchdog,
    pub clients: HashMap<RawFd, Client>,
    /// What clients have asked since the last window ended.
    pub asked: Vec<(RawFd, Result<Question, String>)>,
    pub sleepers: Vec<Sleeper>,
    pub turns: u64,
    pub hosts: Vec<Option<Host>>,
    /// Which hosts have been started at all. Time begins when all have, so that each begins with it.
    pub ordered: Vec<bool>,
    /// The supervisor's number of each host's last start, and why the clock has ended what was started then.
    pub starts: Vec<(u64, Option<String>)>,
    pub ports: Vec<Vec<Port>>,
    /// Which hosts have been told of that no more is taken of them.
    pub full: Vec<bool>,
    pub gate: Gate,
    /// It never goes back.
    pub now: u64,
    /// The end of the window that time is in.
    window: Option<u64>,
    /// Hosts that have something to do in this window and wait for others to end their turn.
    ready: Vec<usize>,
    pub lookahead: u64,
    /// How many kernels may run side by side.
    at_once: usize,
    /// When the pace began: by this machine's clock, and by the lab's.
    paced_since: Option<(Instant, u64)>,
}

impl Lab {
    pub fn new(order: orders::Lab, control: OwnedFd, listener: OwnedFd) -> io::Result<Lab> {
        let layout = order.layout;
        let ports = wires(&layout)?;
        let count = layout.hosts.len();
        let hosts = layout.hosts.iter().map(|_| None).collect();
        let at_once = match order.at_once {
            0 => std::thread::available_parallelism()?.get(),
            number => number,
        };
        let ordered = vec![false; layout.hosts.len()];
        let mut lab = Lab {
            epoch_ns: order.epoch_ns,
            longest_turn_s: order.longest_turn_s,
            layout,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            control,
            listener,
            sources: HashMap::new(),
            watchdog: Watchdog::start()?,
            clients: HashMap::new(),
            asked: Vec::new(),
            sleepers: Vec::new(),
            turns: 0,
            hosts,
            ordered,
            starts: vec![(0, None); count],
            ports,
            full: vec![false; count],
            gate: Gate::default(),
            now: 0,
            window: None,
            ready: Vec::new(),
            lookahead: 0,
            at_once,
            paced_since: None,
        };
        lab.lookahead = lab.least_ns();
        watch(&lab.epoll, &mut lab.sources, &lab.control, Source::Control)?;
        watch(
            &lab.epoll,
            &mut lab.sources,
            &lab.listener,
            Source::Listener,
        )?;
        watch(
            &lab.epoll,
            &mut lab.sources,
            lab.watchdog.fd(),
            Source::Watchdog,
        )?;
        Ok(lab)
    }

    /// Until the supervisor goes. One message of each that has one is served, then the next of each.
    pub fn serve(mut self) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        loop {
            self.watchdog.step_begins(None);
            let patience = self.advance()?;
            self.watchdog
                .somebody_has_a_turn(self.somebody_has_a_turn());
            self.watchdog.step_ends();
            let count = match self.epoll.wait(&mut events, patience) {
                Err(nix::errno::Errno::EINTR) => continue,
                other => other?,
            };
            for event in &events[..count] {
                let fd = event.data() as RawFd;
                let Some(source) = self.sources.get(&fd).copied() else {
                    continue;
                };
                if !self.serve_one(fd, source, event.events())? {
                    return Ok(());
                }
            }
        }
    }

    /// False when the supervisor has ended.
    fn serve_one(&mut self, fd: RawFd, source: Source, events: EpollFlags) -> io::Result<bool> {
        let host = match source {
            Source::Calendar(host) | Source::Line(host) | Source::Device(host, _) => Some(host),
            _ => None,
        };
        self.watchdog.step_begins(host);
        match source {
            Source::Control => return self.take_order(),
            Source::Listener => self.accept()?,
            Source::Watchdog => self.look_after_turns()?,
            Source::Client if events.contains(EpollFlags::EPOLLOUT) => self.go_on_telling(fd)?,
            Source::Client => self.hear_client(fd)?,
            Source::Calendar(host) => self.hear_host(host)?,
            Source::Line(host) if events.contains(EpollFlags::EPOLLOUT) => {
                self.go_on_saying(host)?
            }
            Source::Line(host) => {
                if let Err(error) = self.hear_line(host) {
                    self.lose(host, &error);
                    self.give_turns()?;
                }
            }
            Source::Device(host, device) => self.hear_device(host, device)?,
        }
        Ok(true)
    }

    fn somebody_has_a_turn(&self) -> bool {
        self.hosts.iter().flatten().any(Host::is_busy)
    }

    /// Open window after window as long as nobody has a turn; how long to wait for the next message at the most.
    fn advance(&mut self) -> io::Result<EpollTimeout> {
        for _ in 0..WINDOWS_AT_ONCE {
            if self.somebody_has_a_turn() {
                return Ok(EpollTimeout::NONE);
            }
            if let Some(end) = self.window.take() {
                self.now = self.now.max(end);
            }
            self.answer_questions()?;
            self.wake()?;
            if !self.passes() {
                self.paced_since = None;
                return Ok(EpollTimeout::NONE);
            }
            self.pass_on_what_was_typed();
            let next = self.hosts.iter().flatten().filter_map(Host::next).min();
            let wake = self.sleepers.iter().map(|sleeper| sleeper.until).min();
            let Some(soonest) = next.into_iter().chain(wake).min() else {
                return Ok(EpollTimeout::NONE);
            };
            let soonest = soonest.max(self.now);
            if let Some(left_ms) = self.pace(soonest) {
                return Ok(EpollTimeout::try_from(left_ms).unwrap_or(EpollTimeout::MAX));
            }
            if wake == Some(soonest) {
                self.now = soonest;
            } else {
                self.open_window(soonest, wake)?;
            }
        }
        Ok(EpollTimeout::ZERO)
    }

    /// A kernel that does not end its turn holds up all the others. What spins in its guest it ends by itself, so it is the
    /// kernel that is stuck; or it never comes up, and time runs away with it.
    fn look_after_turns(&mut self) -> io::Result<()> {
        if !self.watchdog.ticked() {
            return Ok(());
        }
        let most = self.longest_turn_s;
        for index in 0..self.hosts.len() {
            let Some(host) = &mut self.hosts[index] else {
                continue;
            };
            if host.tick() <= most {
                continue;
            }
            let error = if host.waits_for_reader {
                io::Error::other(format!("nobody has read its control line for {most} s"))
            } else {
                io::Error::other(format!("it has not ended its turn for {most} s"))
            };
            self.lose(index, &error);
        }
        self.give_turns()
    }

    pub fn passes(&self) -> bool {
        let starting = self
            .hosts
            .iter()
            .flatten()
            .any(|host| host.state == State::Starting);
        let all_ordered = self.ordered.iter().all(|ordered| *ordered);
        all_ordered
            && !starting
            && !self.gate.somebody_is_busy()
            && (self.somebody_boots() || self.gate.is_open() || !self.sleepers.is_empty())
    }

    fn somebody_boots(&self) -> bool {
        self.hosts.iter().flatten().any(Host::is_booting)
    }

    /// How many milliseconds are left until `next` may come, if a second has to take a second.
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

    /// Not while a host boots: time passes then, and how far is not the client's to see.
    fn pass_on_what_was_typed(&mut self) {
        if self.somebody_boots() {
            return;
        }
        let now = self.now;
        for host in self
            .hosts
            .iter_mut()
            .flatten()
            .filter(|host| !host.typed.is_empty() && host.said.greeted())
        {
            host.typed_at = Some(now);
        }
    }

    /// From `start` to where a host could hear of another, or a client is to act.
    fn open_window(&mut self, start: u64, wake: Option<u64>) -> io::Result<()> {
        let late = |host: &Option<Host>| {
            host.as_ref()
                .is_some_and(|host| host.boots_since(start) > LONGEST_BOOT_NS)
        };
        for index in (0..self.hosts.len())
            .filter(|index| late(&self.hosts[*index]))
            .collect::<Vec<_>>()
        {
            self.lose(index, &io::Error::other("it does not come up"));
        }
        let end = wake
            .unwrap_or(u64::MAX)
            .min(start.saturating_add(self.lookahead));
        self.window = Some(end);
        let due = |host: &Option<Host>| {
            host.as_ref()
                .and_then(Host::next)
                .is_some_and(|next| next < end)
        };
        self.ready = (0..self.hosts.len())
            .filter(|index| due(&self.hosts[*index]))
            .collect();
        self.ready.reverse();
        self.give_turns()
    }

    /// Let hosts that are ready run, as many side by side as may.
    fn give_turns(&mut self) -> io::Result<()> {
        let Some(end) = self.window else {
            return Ok(());
        };
        let mut busy = self
            .hosts
            .iter()
            .flatten()
            .filter(|host| host.is_busy())
            .count();
        while busy < self.at_once {
            let Some(index) = self.ready.pop() else { break };
            let Some(host) = &mut self.hosts[index] else {
                continue;
            };
            let step = host.step(end);
            for (from, port) in std::mem::take(&mut host.overrun) {
                self.ports[from][port].wire.drop_at_end();
            }
            match step {
                Ok(Step::Busy) => busy += 1,
                Ok(Step::Idle) => {}
                Err(error) => self.lose(index, &error),
            }
        }
        Ok(())
    }

    /// A host's turn is over: it goes on with what comes next in the window, or another does.
    fn turn_is_over(&mut self, index: usize) -> io::Result<()> {
        if self.window.is_some() {
            self.ready.push(index);
        }
        self.give_turns()
    }

    fn hear_host(&mut self, index: usize) -> io::Result<()> {
        let Some(host) = &mut self.hosts[index] else {
            return Ok(());
        };
        match host.hear(self.epoch_ns, self.window.unwrap_or(self.now)) {
            Ok(Came::Some(true)) => {
                // What is fresh has its first turn in the next window.
                if matches!(host.state, State::Fresh(_)) {
                    return Ok(());
                }
                match self.pass_on_sent(index) {
                    Ok(()) => self.turn_is_over(index),
                    Err(error) => {
                        self.lose(index, &error);
                        self.give_turns()
                    }
                }
            }
            Ok(Came::Some(false) | Came::Nothing) => Ok(()),
            Ok(Came::Gone) => {
                self.remove(index);
                self.give_turns()
            }
            Err(error) => {
                self.lose(index, &error);
                self.give_turns()
            }
        }
    }

    fn hear_device(&mut self, index: usize, device: usize) -> io::Result<()> {
        let Some(host) = &mut self.hosts[index] else {
            return Ok(());
        };
        match host.devices[device].receive() {
            Ok(Event::Nothing) => Ok(()),
            Ok(Event::Gone) => {
                self.sources.remove(&host.devices[device].fd().as_raw_fd());
                let _ = self.epoll.delete(host.devices[device].fd());
                Ok(())
            }
            Ok(event) => match self.pass_on(index, device, event) {
                Ok(()) => Ok(()),
                Err(error) => {
                    self.lose(index, &error);
                    self.give_turns()
                }
            },
            Err(error) => {
                self.lose(index, &error);
                self.give_turns()
            }
        }
    }

    /// Pass on what a kernel has sent, if its message says that it has.
    fn pass_on(&mut self, index: usize, device: usize, event: Event) -> io::Result<()> {
        let Some(host) = &mut self.hosts[index] else {
            return Ok(());
        };
        host.speaks()?;
        match event {
            Event::Output if !host.is_busy() => Err(lie("it sent something, and has no turn")),
            Event::Output if device == CONSOLE => self.pass_on_said(index),
            Event::Output => self.pass_on_output(index, device),
            _ => Ok(()),
        }
    }

    /// Pass on what a host has sent in its turn.
    fn pass_on_sent(&mut self, index: usize) -> io::Result<()> {
        let Some(host) = &mut self.hosts[index] else {
            return Ok(());
        };
        let notes = host.take_notes()?;
        let mut taken = vec![0; host.devices.len()];
        for note in notes {
            let Some(host) = &mut self.hosts[index] else {
                return Ok(());
            };
            for frame in host.take_noted(&note, &mut taken)? {
                self.send(index, note.device - 1, note.time, frame);
            }
        }
        Ok(())
    }

    /// Pass on everything that a host has sent by a port, for it waits to be told that this has been done.
    fn pass_on_output(&mut self, index: usize, device: usize) -> io::Result<()> {
        self.pass_on_sent(index)?;
        let Some(host) = &mut self.hosts[index] else {
            return Ok(());
        };
        let now = host.time()?;
        for frame in host.devices[device].take_output(None)? {
            self.send(index, device - 1, now, frame);
        }
        match &mut self.hosts[index] {
            Some(host) => host.devices[device].done(),
            None => Ok(()),
        }
    }

    /// Pass on what a host has said on its console. It goes on when that has been read, or has room to wait.
    fn pass_on_said(&mut self, index: usize) -> io::Result<()> {
        self.pass_on_sent(index)?;
        let Some(host) = &mut self.hosts[index] else {
            return Ok(());
        };
        host.time()?;
        for piece in host.devices[CONSOLE].take_output(None)? {
            for head in host.said.feed(&piece)? {
                if matches!(head.kind, frames::STDOUT | frames::STDERR | frames::EXIT) {
                    self.gate
                        .heard(index, head.channel, head.kind == frames::EXIT);
                }
            }
            host.unread.send(host.line.as_raw_fd(), &piece)?;
        }
        host.waits_for_reader = host.unread.waiting() > 0;
        if host.waits_for_reader {
            return expect(
                &self.epoll,
                &host.line,
                EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
            );
        }
        host.devices[CONSOLE].done()
    }

    /// Somebody reads what a host has said.
    fn go_on_saying(&mut self, index: usize) -> io::Result<()> {
        let Some(host) = &mut self.hosts[index] else {
            return Ok(());
        };
        let done = (|| {
            if host.unread.flush(host.line.as_raw_fd())? {
                host.is_not_to_blame();
            }
            if host.unread.waiting() > 0 {
                return Ok(());
            }
            expect(&self.epoll, &host.line, EpollFlags::EPOLLIN)?;
            if std::mem::take(&mut host.waits_for_reader) {
                host.devices[CONSOLE].done()
            } else {
                Ok(())
            }
        })();
        if let Err(error) = done {
            self.lose(index, &error);
            return self.give_turns();
        }
        Ok(())
    }

    /// A frame leaves a host by one of its ports.
    fn send(&mut self, index: usize, port: usize, now: u64, frame: Vec<u8>) {
        let Some(host) = &mut self.hosts[index] else {
            return;
        };
        let from = &mut self.ports[index][port];
        let Some(leaves) = host.process(now, frame.len()) else {
            return from.wire.drop_at_end();
        };
        for (time, frame) in from.wire.carry(leaves, frame).into_iter().flatten() {
            // Only a link that has just been made shorter could deliver into the window that it was sent in.
            let time = time.max(self.window.unwrap_or(self.now));
            from.sent += 1;
            let origin = (index, port, from.sent);
            let (peer, peer_port) = from.peer;
            let Some(peer) = &mut self.hosts[peer] else {
                continue;
            };
            match from.under_way.hold(frame.len(), &from.wire) {
                Some(held) => peer.expect(Arrival {
                    time,
                    origin,
                    port: peer_port + 1,
                    processed: false,
                    frame,
                    _held: held,
                }),
                None => {
                    from.wire.drop_at_end();
                    if !std::mem::replace(&mut self.full[index], true) {
                        let name = &self.layout.hosts[index].name;
                        eprintln!("{name}: no more of what it sends is kept under way; the rest is dropped, as by a queue");
                    }
                }
            }
        }
    }

    fn hear_line(&mut self, index: usize) -> io::Result<()> {
        let Some(host) = &mut self.hosts[index] else {
            return Ok(());
        };
        let mut bytes = [0; PIECE];
        let count = match socket::read_some(host.line.as_raw_fd(), &mut bytes)? {
            Came::Nothing => return Ok(()),
            Came::Gone => {
                self.sources.remove(&host.line.as_raw_fd());
                let _ = self.epoll.delete(&host.line);
                return Ok(());
            }
            Came::Some(count) => count,
        };
        for (head, frame) in host.asked.feed(&bytes[..count]) {
            let payload = &frame[frames::HEAD..];
            match head.kind {
                frames::WAIT => {
                    let turn = payload
                        .get(..8)
                        .map_or(0, |turn| u64::from_be_bytes(turn.try_into().unwrap()));
                    self.gate
                        .wait(index, head.channel, turn, payload.get(8) == Some(&1));
                }
                frames::PACE => self.gate.pace(index, head.channel),
                frames::KILL => {
                    self.gate.forget(index, head.channel);
                    host.typed.extend_from_slice(&frame);
                }
                kind => {
                    if kind == frames::RUN {
                        self.gate.begin(index, head.channel);
                    }
                    host.typed.extend_from_slice(&frame);
                }
            }
        }
        Ok(())
    }

    /// The supervisor has started a kernel. False when the supervisor has ended.
    fn take_order(&mut self) -> io::Result<bool> {
        let mut bytes = [0; LONGEST_ORDER];
        let (count, descriptors) =
            match socket::read_with_descriptors(self.control.as_raw_fd(), &mut bytes)? {
                Came::Nothing => return Ok(true),
                Came::Gone => return Ok(false),
                Came::Some(came) => came,
            };
        let order: orders::Start = serde_json::from_slice(&bytes[..count])?;
        let index = order.host;
        self.remove(index);
        let host = &self.layout.hosts[index];
        let mut descriptors = descriptors.into_iter();
        let mut next = || {
            descriptors
                .next()
                .ok_or_else(|| io::Error::other("a host without its descriptors"))
        };
        let (calendar, line) = (next()?, next()?);
        let mut devices = vec![Device::new(Kind::Console, next()?)];
        for port in &host.ports {
            devices.push(Device::new(
                Kind::Network {
                    mac: parse_mac(port)?,
                },
                next()?,
            ));
        }
        let host = Host::new(calendar, line, devices, host.processor.clone(), self.now)?;
        watch(
            &self.epoll,
            &mut self.sources,
            host.calendar_fd(),
            Source::Calendar(index),
        )?;
        watch(
            &self.epoll,
            &mut self.sources,
            &host.line,
            Source::Line(index),
        )?;
        for (number, device) in host.devices.iter().enumerate() {
            watch(
                &self.epoll,
                &mut self.sources,
                device.fd(),
                Source::Device(index, number),
            )?;
        }
        self.hosts[index] = Some(host);
        self.ordered[index] = true;
        self.starts[index] = (order.start, None);
        Ok(true)
    }

    /// A host's kernel has done what none does. Or it has ended, and was told something meanwhile.
    fn lose(&mut self, index: usize, error: &io::Error) {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        if !matches!(error.kind(), BrokenPipe | ConnectionReset) {
            let why = error.to_string();
            eprintln!(
                "{}: {why}; it is no longer on the clock",
                self.layout.hosts[index].name
            );
            // Before its sockets are closed, so that whoever finds them closed can be told why.
            self.tell_supervisor(index, &why);
            self.starts[index].1 = Some(why);
        }
        self.remove(index);
    }

    /// Should it have no room, which takes hundreds of these unread, the kernel still finds its sockets closed.
    fn tell_supervisor(&self, host: usize, why: &str) {
        let lost = Lost {
            host,
            start: self.starts[host].0,
            why,
        };
        if let Ok(text) = serde_json::to_vec(&lost) {
            let _ = socket::write_some(self.control.as_raw_fd(), &text);
        }
    }

    /// A kernel has ended. What is on its way to it is lost.
    pub fn remove(&mut self, index: usize) {
        let Some(host) = self.hosts[index].take() else {
            return;
        };
        self.gate.forget_host(index);
        let fds = [host.calendar_fd(), &host.line]
            .into_iter()
            .chain(host.devices.iter().map(Device::fd));
        for fd in fds {
            if self.sources.remove(&fd.as_raw_fd()).is_some() {
                let _ = self.epoll.delete(fd);
            }
        }
    }
}

/// Watch also, or no longer, for when there is room to write.
pub fn expect(epoll: &Epoll, fd: &(impl AsFd + AsRawFd), what: EpollFlags) -> io::Result<()> {
    Ok(epoll.modify(fd, &mut EpollEvent::new(what, fd.as_raw_fd() as u64))?)
}

pub fn watch(
    epoll: &Epoll,
    sources: &mut HashMap<RawFd, Source>,
    fd: &(impl AsFd + AsRawFd),
    source: Source,
) -> io::Result<()> {
    let number = fd.as_raw_fd();
    epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
    sources.insert(number, source);
    Ok(())
}

/// Each host's ports with what they send into and where that leads.
pub fn wires(layout: &Layout) -> io::Result<Vec<Vec<Port>>> {
    let mut peers = HashMap::new();
    for [first, second] in &layout.links {
        peers.insert(*first, *second);
        peers.insert(*second, *first);
    }
    let mut settings: HashMap<_, _> = layout
        .wires
        .iter()
        .map(|one| ((one.host, one.port), one.wire.clone()))
        .collect();
    let mut all = Vec::new();
    for (host, ordered) in layout.hosts.iter().enumerate() {
        let mut ports = Vec::new();
        let of_host: Rc<Cell<usize>> = Rc::default();
        for port in 0..ordered.ports.len() {
            let missing =
                || io::Error::other(format!("port {port} of {} leads nowhere", ordered.name));
            let peer = *peers.get(&(host, port)).ok_or_else(missing)?;
            let wire = Wire::new(settings.remove(&(host, port)).ok_or_else(missing)?);
            ports.push(Port {
                wire,
                peer,
                sent: 0,
                under_way: UnderWay::of_port(&of_host),
            });
        }
        all.push(ports);
    }
    Ok(all)
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
