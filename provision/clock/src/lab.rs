//! The clock itself. Time goes on in *windows*: from the next moment in which anything happens to the least time that a
//! frame needs to another host. Within a window no host can hear of another, so all that have something to do run side
//! by side, and what comes out does not depend on which is faster (conservative lookahead: Chandy and Misra, 1979).

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Instant;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{accept4, SockFlag};

use crate::device::{Device, Event, Kind};
use crate::frames;
use crate::gate::Gate;
use crate::host::{Arrival, Host, State, Step, CONSOLE};
use crate::orders::{self, Answer, Layout, PortSettings, Question, WireState};
use crate::socket;
use crate::wire::Wire;

const LONGEST_ORDER: usize = 1 << 16;
const LONGEST_QUESTION: usize = 16 << 20;
const PIECE: usize = 1 << 16;
/// How long a kernel may be silent within its turn, by this machine's time.
const LONGEST_TURN_S: u64 = 60;
const LOOK_AFTER_MS: u16 = 5000;
/// How long a kernel may take until it greets, by the lab's time.
const LONGEST_BOOT_NS: u64 = 300 * 1_000_000_000;

#[derive(Clone, Copy)]
enum Source {
    Control,
    Listener,
    Client,
    Calendar(usize),
    Line(usize),
    Device(usize, usize),
}

struct Client {
    socket: OwnedFd,
    turn: Option<u64>,
    said: Vec<u8>,
}

/// A client that waits for a moment of the clock, and for no host.
struct Sleeper {
    until: u64,
    fd: RawFd,
    turn: u64,
}

struct Port {
    wire: Wire,
    /// Where it leads: the host and port at the other end.
    peer: (usize, usize),
    sent: u64,
}

pub struct Lab {
    epoch_ns: u64,
    layout: Layout,
    epoll: Epoll,
    control: OwnedFd,
    listener: OwnedFd,
    sources: HashMap<RawFd, Source>,
    clients: HashMap<RawFd, Client>,
    /// What clients have asked since the last window ended.
    asked: Vec<(RawFd, Vec<u8>)>,
    sleepers: Vec<Sleeper>,
    turns: u64,
    hosts: Vec<Option<Host>>,
    /// Which hosts have been started at all. Time begins when all have, so that each begins with it.
    ordered: Vec<bool>,
    ports: Vec<Vec<Port>>,
    gate: Gate,
    now: u64,
    /// The end of the window that time is in.
    window: Option<u64>,
    /// Hosts that have something to do in this window and wait for others to end their turn.
    ready: Vec<usize>,
    lookahead: u64,
    /// How many kernels may run side by side.
    at_once: usize,
    /// When the pace began: by this machine's clock, and by the lab's.
    paced_since: Option<(Instant, u64)>,
}

impl Lab {
    pub fn new(order: orders::Lab, control: OwnedFd, listener: OwnedFd) -> io::Result<Lab> {
        let layout = order.layout;
        let ports = wires(&layout)?;
        let hosts = layout.hosts.iter().map(|_| None).collect();
        let at_once = match order.at_once {
            0 => std::thread::available_parallelism()?.get(),
            number => number,
        };
        let ordered = vec![false; layout.hosts.len()];
        let mut lab = Lab {
            epoch_ns: order.epoch_ns,
            layout,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            control,
            listener,
            sources: HashMap::new(),
            clients: HashMap::new(),
            asked: Vec::new(),
            sleepers: Vec::new(),
            turns: 0,
            hosts,
            ordered,
            ports,
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
        watch(&lab.epoll, &mut lab.sources, &lab.listener, Source::Listener)?;
        Ok(lab)
    }

    /// Until the supervisor goes.
    pub fn serve(mut self) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        loop {
            let patience = self.advance()?;
            let count = match self.epoll.wait(&mut events, patience) {
                Err(nix::errno::Errno::EINTR) => continue,
                other => other?,
            };
            if count == 0 {
                self.give_up_the_stuck()?;
            }
            for event in &events[..count] {
                let fd = event.data() as RawFd;
                let Some(source) = self.sources.get(&fd).copied() else { continue };
                match source {
                    Source::Control => {
                        if !self.take_order()? {
                            return Ok(());
                        }
                    }
                    Source::Listener => self.accept()?,
                    Source::Client => self.hear_client(fd)?,
                    Source::Calendar(host) => self.hear_host(host)?,
                    Source::Line(host) => self.hear_line(host)?,
                    Source::Device(host, device) => self.hear_device(host, device)?,
                }
            }
        }
    }

    /// Open window after window as long as nobody has a turn; how long to wait for the next message at the most.
    fn advance(&mut self) -> io::Result<EpollTimeout> {
        loop {
            if self.hosts.iter().flatten().any(Host::is_busy) {
                return Ok(EpollTimeout::from(LOOK_AFTER_MS));
            }
            if let Some(end) = self.window.take() {
                self.now = end;
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
            let Some(soonest) = next.into_iter().chain(wake).min() else { return Ok(EpollTimeout::NONE) };
            if let Some(left_ms) = self.pace(soonest) {
                return Ok(EpollTimeout::try_from(left_ms).unwrap_or(EpollTimeout::MAX));
            }
            if wake == Some(soonest) {
                self.now = self.now.max(soonest);
            } else {
                self.open_window(soonest, wake)?;
            }
        }
    }

    /// A kernel that does not end its turn holds up all the others. What spins in its guest it ends by itself, so it is the
    /// kernel that is stuck; or it never comes up, and time runs away with it.
    fn give_up_the_stuck(&mut self) -> io::Result<()> {
        let stuck = |host: &Option<Host>| host.as_ref().is_some_and(|host| host.turn_lasts_s() > LONGEST_TURN_S);
        for index in (0..self.hosts.len()).filter(|index| stuck(&self.hosts[*index])).collect::<Vec<_>>() {
            self.lose(index, &io::Error::other(format!("it has not ended its turn for {LONGEST_TURN_S} s")));
        }
        self.give_turns()
    }

    fn passes(&self) -> bool {
        let starting = self.hosts.iter().flatten().any(|host| host.state == State::Starting);
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
        for host in self.hosts.iter_mut().flatten().filter(|host| !host.typed.is_empty() && host.said.greeted()) {
            host.typed_at = Some(now);
        }
    }

    /// From `start` to where a host could hear of another, or a client is to act.
    fn open_window(&mut self, start: u64, wake: Option<u64>) -> io::Result<()> {
        let late = |host: &Option<Host>| host.as_ref().is_some_and(|host| host.boots_since(start) > LONGEST_BOOT_NS);
        for index in (0..self.hosts.len()).filter(|index| late(&self.hosts[*index])).collect::<Vec<_>>() {
            self.lose(index, &io::Error::other("it does not come up"));
        }
        let end = wake.unwrap_or(u64::MAX).min(start + self.lookahead);
        self.window = Some(end);
        let due = |host: &Option<Host>| host.as_ref().and_then(Host::next).is_some_and(|next| next < end);
        self.ready = (0..self.hosts.len()).filter(|index| due(&self.hosts[*index])).collect();
        self.ready.reverse();
        self.give_turns()
    }

    /// Let hosts that are ready run, as many side by side as may.
    fn give_turns(&mut self) -> io::Result<()> {
        let Some(end) = self.window else { return Ok(()) };
        let mut busy = self.hosts.iter().flatten().filter(|host| host.is_busy()).count();
        while busy < self.at_once {
            let Some(index) = self.ready.pop() else { break };
            let Some(host) = &mut self.hosts[index] else { continue };
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
        let Some(host) = &mut self.hosts[index] else { return Ok(()) };
        match host.hear(self.epoch_ns, self.window.unwrap_or(self.now)) {
            Ok(Some(true)) => {
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
            Ok(Some(false)) => Ok(()),
            Ok(None) => {
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
        let Some(host) = &mut self.hosts[index] else { return Ok(()) };
        match host.devices[device].receive() {
            Ok(Event::Settled) => Ok(()),
            Ok(Event::Gone) => {
                self.sources.remove(&host.devices[device].fd().as_raw_fd());
                let _ = self.epoll.delete(host.devices[device].fd());
                Ok(())
            }
            Ok(Event::Output) => match self.pass_on_output(index, device) {
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

    /// Pass on what a host has sent in its turn.
    fn pass_on_sent(&mut self, index: usize) -> io::Result<()> {
        let Some(host) = &mut self.hosts[index] else { return Ok(()) };
        for (time, device, frame) in host.take_sent()? {
            if device != CONSOLE {
                self.send(index, device - 1, time, frame);
            }
        }
        Ok(())
    }

    /// Pass on everything that a host has sent, for it waits to be told that this has been done.
    fn pass_on_output(&mut self, index: usize, device: usize) -> io::Result<()> {
        self.pass_on_sent(index)?;
        let Some(host) = &mut self.hosts[index] else { return Ok(()) };
        let now = host.time();
        for piece in host.devices[device].take_output(None)? {
            if device == CONSOLE {
                self.hear_said(index, &piece)?;
            } else {
                self.send(index, device - 1, now, piece);
            }
        }
        match &mut self.hosts[index] {
            Some(host) => host.devices[device].done(),
            None => Ok(()),
        }
    }

    fn hear_said(&mut self, index: usize, bytes: &[u8]) -> io::Result<()> {
        let Some(host) = &mut self.hosts[index] else { return Ok(()) };
        for head in host.said.feed(bytes) {
            if matches!(head.kind, frames::STDOUT | frames::STDERR | frames::EXIT) {
                self.gate.heard(index, head.channel, head.kind == frames::EXIT);
            }
        }
        host.say(bytes)
    }

    /// A frame leaves a host by one of its ports.
    fn send(&mut self, index: usize, port: usize, now: u64, frame: Vec<u8>) {
        let Some(host) = &mut self.hosts[index] else { return };
        let from = &mut self.ports[index][port];
        let Some(leaves) = host.process(now, frame.len()) else { return from.wire.drop_at_end() };
        for (time, frame) in from.wire.carry(leaves, frame).into_iter().flatten() {
            // Only a link that has just been made shorter could deliver into the window that it was sent in.
            let time = time.max(self.window.unwrap_or(0));
            from.sent += 1;
            let origin = (index, port, from.sent);
            let (peer, peer_port) = from.peer;
            if let Some(peer) = &mut self.hosts[peer] {
                peer.expect(Arrival { time, origin, port: peer_port + 1, processed: false, frame });
            }
        }
    }

    fn hear_line(&mut self, index: usize) -> io::Result<()> {
        let Some(host) = &mut self.hosts[index] else { return Ok(()) };
        let mut bytes = [0; PIECE];
        let count = match socket::read_some(host.line.as_raw_fd(), &mut bytes)? {
            None => return Ok(()),
            Some(0) => {
                self.sources.remove(&host.line.as_raw_fd());
                let _ = self.epoll.delete(&host.line);
                return Ok(());
            }
            Some(count) => count,
        };
        for (head, frame) in host.asked.feed(&bytes[..count]) {
            let payload = &frame[frames::HEAD..];
            match head.kind {
                frames::WAIT => {
                    let turn = payload.get(..8).map_or(0, |turn| u64::from_be_bytes(turn.try_into().unwrap()));
                    self.gate.wait(index, head.channel, turn, payload.get(8) == Some(&1));
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
        let (count, descriptors) = socket::read_with_descriptors(self.control.as_raw_fd(), &mut bytes)?;
        if count == 0 {
            return Ok(false);
        }
        let order: orders::Start = serde_json::from_slice(&bytes[..count])?;
        let index = order.host;
        self.remove(index);
        let host = &self.layout.hosts[index];
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(|| io::Error::other("a host without its descriptors"));
        let (calendar, line) = (next()?, next()?);
        let mut devices = vec![Device::new(Kind::Console, next()?)];
        for port in &host.ports {
            devices.push(Device::new(Kind::Network { mac: parse_mac(port)? }, next()?));
        }
        let host = Host::new(calendar, line, devices, host.processor.clone(), self.now)?;
        watch(&self.epoll, &mut self.sources, host.calendar_fd(), Source::Calendar(index))?;
        watch(&self.epoll, &mut self.sources, &host.line, Source::Line(index))?;
        for (number, device) in host.devices.iter().enumerate() {
            watch(&self.epoll, &mut self.sources, device.fd(), Source::Device(index, number))?;
        }
        self.hosts[index] = Some(host);
        self.ordered[index] = true;
        Ok(true)
    }

    fn accept(&mut self) -> io::Result<()> {
        let number = accept4(self.listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?;
        // SAFETY: accept4 has just made it.
        let socket = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(number) };
        watch(&self.epoll, &mut self.sources, &socket, Source::Client)?;
        self.clients.insert(number, Client { socket, turn: None, said: Vec::new() });
        Ok(())
    }

    fn hear_client(&mut self, fd: RawFd) -> io::Result<()> {
        let Some(client) = self.clients.get_mut(&fd) else { return Ok(()) };
        let mut bytes = [0; PIECE];
        match socket::read_some(fd, &mut bytes)? {
            None => return Ok(()),
            Some(0) => {
                self.dismiss(fd);
                return Ok(());
            }
            Some(count) => client.said.extend_from_slice(&bytes[..count]),
        }
        while let Some(client) = self.clients.get_mut(&fd) {
            let Some(end) = client.said.iter().position(|byte| *byte == b'\n') else {
                if client.said.len() > LONGEST_QUESTION {
                    self.dismiss(fd);
                }
                return Ok(());
            };
            let line: Vec<u8> = client.said.drain(..=end).collect();
            self.asked.push((fd, line));
        }
        Ok(())
    }

    /// Between two windows: what a client does within one would depend on which hosts have done with it.
    fn answer_questions(&mut self) -> io::Result<()> {
        for (fd, line) in std::mem::take(&mut self.asked) {
            let answer = match serde_json::from_slice(&line) {
                Ok(Question::Sleep { until_ns, turn }) if until_ns > self.now => {
                    self.gate.rest(turn);
                    self.sleepers.push(Sleeper { until: until_ns, fd, turn });
                    continue;
                }
                Ok(question) => self.answer(fd, question),
                Err(error) => Answer::Refused { error: error.to_string() },
            };
            self.tell(fd, &answer)?;
        }
        Ok(())
    }

    /// Who has slept until now is busy again: time stands still until it waits for something else.
    fn wake(&mut self) -> io::Result<()> {
        let (due, asleep) = std::mem::take(&mut self.sleepers).into_iter().partition(|one| one.until <= self.now);
        self.sleepers = asleep;
        for Sleeper { fd, turn, .. } in due {
            self.gate.resume(turn);
            self.tell(fd, &Answer::Now { now_ns: self.now, passes: false })?;
        }
        Ok(())
    }

    fn tell(&mut self, fd: RawFd, answer: &Answer) -> io::Result<()> {
        let mut text = serde_json::to_vec(answer)?;
        text.push(b'\n');
        if socket::write_whole(fd, &text).is_err() {
            self.dismiss(fd);
        }
        Ok(())
    }

    fn answer(&mut self, fd: RawFd, question: Question) -> Answer {
        match question {
            Question::Turn => {
                self.turns += 1;
                self.gate.begin_turn(self.turns);
                if let Some(client) = self.clients.get_mut(&fd) {
                    client.turn = Some(self.turns);
                }
                Answer::Turn { turn: self.turns }
            }
            Question::Rest | Question::Resume => {
                let turn = self.clients.get(&fd).and_then(|client| client.turn);
                let Some(turn) = turn else { return Answer::Refused { error: "this client has no turn".into() } };
                self.gate.set_busy(turn, matches!(question, Question::Resume));
                Answer::Done {}
            }
            Question::Now | Question::Sleep { .. } => Answer::Now { now_ns: self.now, passes: self.passes() },
            Question::Wires => Answer::Wires { wires: self.wire_states() },
            Question::Pause { host } => self.pause(host, true),
            Question::GoOn { host } => self.pause(host, false),
            Question::Set { wires } => self.set_wires(wires),
            Question::Lay(layout) => self.lay(layout),
        }
    }

    fn wire_states(&self) -> Vec<WireState> {
        let mut states = Vec::new();
        for (host, ports) in self.ports.iter().enumerate() {
            for (port, Port { wire, .. }) in ports.iter().enumerate() {
                let settings = PortSettings { host, port, wire: wire.settings().clone() };
                states.push(WireState { settings, counts: wire.counts(), queued: wire.queued(self.now) });
            }
        }
        states
    }

    fn pause(&mut self, index: usize, pauses: bool) -> Answer {
        let now = self.now;
        let done = match self.hosts.get_mut(index) {
            Some(Some(host)) if pauses => host.pause(now),
            Some(Some(host)) => {
                host.go_on(now);
                true
            }
            _ => false,
        };
        if done {
            Answer::Done {}
        } else {
            Answer::Refused { error: format!("host {index} is not up") }
        }
    }

    fn set_wires(&mut self, wires: Vec<PortSettings>) -> Answer {
        let known = |one: &PortSettings| self.ports.get(one.host).is_some_and(|ports| one.port < ports.len());
        if let Some(other) = wires.iter().find(|one| !known(one)) {
            return Answer::Refused { error: format!("host {} has no port {}", other.host, other.port) };
        }
        for one in wires {
            self.ports[one.host][one.port].wire.set(one.wire);
        }
        self.lookahead = self.least_ns();
        Answer::Done {}
    }

    /// Hosts and links from now on. A host whose ports are others is no longer on the clock. Wires that stay go on as they
    /// are, with their random numbers and what is under way on them.
    fn lay(&mut self, layout: Layout) -> Answer {
        let mut ports = match wires(&layout) {
            Ok(ports) => ports,
            Err(error) => return Answer::Refused { error: error.to_string() },
        };
        for index in 0..self.hosts.len() {
            if layout.hosts.get(index).is_none_or(|host| host.ports != self.layout.hosts[index].ports) {
                self.remove(index);
            }
        }
        let known = self.layout.hosts.iter().zip(std::mem::take(&mut self.ports)).enumerate();
        let mut kept: HashMap<(usize, String), Port> = known
            .flat_map(|(index, (host, ports))| {
                host.ports.iter().cloned().zip(ports).map(move |(mac, port)| ((index, mac), port))
            })
            .collect();
        for (index, host) in layout.hosts.iter().enumerate() {
            for (port, mac) in ports[index].iter_mut().zip(&host.ports) {
                if let Some(before) = kept.remove(&(index, mac.clone())) {
                    *port = Port { peer: port.peer, ..before };
                }
            }
        }
        self.hosts.resize_with(layout.hosts.len(), || None);
        self.ordered = vec![true; layout.hosts.len()];
        self.ports = ports;
        self.layout = layout;
        self.lookahead = self.least_ns();
        Answer::Done {}
    }

    fn least_ns(&self) -> u64 {
        self.ports.iter().flatten().map(|port| port.wire.least_ns()).min().unwrap_or(1_000_000_000)
    }

    fn dismiss(&mut self, fd: RawFd) {
        self.sources.remove(&fd);
        self.asked.retain(|(asking, _)| *asking != fd);
        self.sleepers.retain(|sleeper| sleeper.fd != fd);
        if let Some(client) = self.clients.remove(&fd) {
            let _ = self.epoll.delete(&client.socket);
            if let Some(turn) = client.turn {
                self.gate.end_turn(turn);
            }
        }
    }

    fn lose(&mut self, index: usize, error: &io::Error) {
        eprintln!("{}: {error}; it is no longer on the clock", self.layout.hosts[index].name);
        self.remove(index);
    }

    /// A kernel has ended. What is on its way to it is lost.
    fn remove(&mut self, index: usize) {
        let Some(host) = self.hosts[index].take() else { return };
        self.gate.forget_host(index);
        let fds = [host.calendar_fd(), &host.line].into_iter().chain(host.devices.iter().map(Device::fd));
        for fd in fds {
            if self.sources.remove(&fd.as_raw_fd()).is_some() {
                let _ = self.epoll.delete(fd);
            }
        }
    }
}

fn watch(
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
fn wires(layout: &Layout) -> io::Result<Vec<Vec<Port>>> {
    let mut peers = HashMap::new();
    for [first, second] in &layout.links {
        peers.insert(*first, *second);
        peers.insert(*second, *first);
    }
    let mut settings: HashMap<_, _> = layout.wires.iter().map(|one| ((one.host, one.port), one.wire.clone())).collect();
    let mut all = Vec::new();
    for (host, ordered) in layout.hosts.iter().enumerate() {
        let mut ports = Vec::new();
        for port in 0..ordered.ports.len() {
            let missing = || io::Error::other(format!("port {port} of {} leads nowhere", ordered.name));
            let peer = *peers.get(&(host, port)).ok_or_else(missing)?;
            let wire = Wire::new(settings.remove(&(host, port)).ok_or_else(missing)?);
            ports.push(Port { wire, peer, sent: 0 });
        }
        all.push(ports);
    }
    Ok(all)
}

fn parse_mac(text: &str) -> io::Result<[u8; 6]> {
    let bytes: Vec<u8> = text.split(':').filter_map(|part| u8::from_str_radix(part, 16).ok()).collect();
    bytes.try_into().map_err(|_| io::Error::other(format!("{text} is no MAC address")))
}
