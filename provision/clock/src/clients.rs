//! What clients ask of the clock, and what it answers.
//!
//! A request is a line of JSON (orders.rs), and so is its answer. Requests are answered between two windows, in the order in
//! which they came.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::EpollTimeout;
use nix::sys::socket::{accept4, SockFlag};

use crate::host::{Host, State};
use crate::orders::{Answer, HostState, Request, Topology};
use crate::server::{Server, Start, PIECE};
use crate::socket::{self, Outbox, Received};
use crate::sources::{Interest, Source};

/// The longest request, in bytes. A client that sends a longer one is disconnected.
const LONGEST_REQUEST: usize = 16 << 20;
/// How many bytes of answers a client may leave unread. One that leaves more is disconnected.
const MOST_UNREAD: usize = 64 << 20;
/// How long new clients wait, at the most, until it is tried again whether there is a descriptor for them.
const ACCEPT_AGAIN: Duration = Duration::from_secs(1);
/// How many captured frames clients are told of at once.
const MOST_CAPTURED: usize = 256;

#[derive(Default)]
pub struct Clients {
    /// By their sockets' numbers.
    connections: HashMap<RawFd, Client>,
    /// What clients have asked since the last window ended; an error for what is no request.
    requests: Vec<(RawFd, Result<Request, String>)>,
    sleepers: Vec<Sleeper>,
    /// How many turns clients have been given.
    turns: u64,
    /// When new clients are accepted again; None: they are. They wait where this process may open no more files.
    again_at: Option<Instant>,
    /// Whether it has been said that they wait, and none has been accepted since.
    told_full: bool,
}

struct Client {
    socket: OwnedFd,
    /// The number of its turn, in which it acts side by side with other clients.
    turn: Option<u64>,
    /// Whether it is told of each frame.
    captures: bool,
    /// What has come with its last request that had one: a socket of a lab that begins.
    given: Option<OwnedFd>,
    /// The beginning of a request, whose end has not come yet.
    unfinished: Vec<u8>,
    unread: Outbox,
}

/// A client that waits for a moment of the lab's clock, and for no host.
struct Sleeper {
    until: u64,
    fd: RawFd,
    turn: u64,
}

impl Clients {
    /// The next moment for which a client waits.
    pub fn next_wakeup(&self) -> Option<u64> {
        self.sleepers.iter().map(|sleeper| sleeper.until).min()
    }

    /// Something was closed, so that new clients may have room.
    pub fn something_was_closed(&mut self) {
        if let Some(at) = &mut self.again_at {
            *at = Instant::now();
        }
    }
}

impl Server {
    /// Accept a new client. It waits where there is no room for it, and the clock goes on.
    pub fn accept(&mut self) -> io::Result<()> {
        let number = match accept4(self.listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC) {
            Err(Errno::ECONNABORTED | Errno::EINTR | Errno::EAGAIN) => return Ok(()),
            Err(error @ (Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS)) => {
                return self.accept_later(error)
            }
            other => other?,
        };
        // SAFETY: accept4 has just made it.
        let socket = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(number) };
        if let Err(error) = self.sources.add(&socket, Source::Client) {
            let error = format!("it can watch no more clients: {error}");
            eprintln!("clock: {error}");
            if let Ok(text) = serde_json::to_vec(&Answer::Refused { error }) {
                let _ = socket::write_some(number, &[&text[..], b"\n"].concat());
            }
            return Ok(());
        }
        self.clients.told_full = false;
        let client = Client {
            socket,
            turn: None,
            captures: false,
            given: None,
            unfinished: Vec::new(),
            unread: Outbox::default(),
        };
        self.clients.connections.insert(number, client);
        Ok(())
    }

    /// Let new clients wait until something is closed, or for a while: the limit may be another's, or be raised.
    fn accept_later(&mut self, error: Errno) -> io::Result<()> {
        if !std::mem::replace(&mut self.clients.told_full, true) {
            eprintln!(
                "clock: new clients wait until it may open more files: {}",
                error.desc()
            );
        }
        self.clients.again_at = Some(Instant::now() + ACCEPT_AGAIN);
        self.sources.set_interest(&self.listener, Interest::Nothing)
    }

    /// Accept new clients again when they have waited for long enough. Returns how long to wait, at most `timeout`.
    pub fn accept_again(&mut self, timeout: EpollTimeout) -> io::Result<EpollTimeout> {
        let Some(at) = self.clients.again_at else {
            return Ok(timeout);
        };
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.clients.again_at = None;
            self.sources.set_interest(&self.listener, Interest::Input)?;
            return Ok(timeout);
        }
        // Rounded up, so that it is not tried too early again and again.
        let left_ms = left.as_millis() as i32 + 1;
        let shorter = match i32::from(timeout) {
            ..0 => left_ms,
            ms => ms.min(left_ms),
        };
        Ok(EpollTimeout::try_from(shorter).unwrap_or(EpollTimeout::MAX))
    }

    /// Read a client's requests. They wait for the end of the window, but for one that asks what hosts are doing.
    pub fn read_requests(&mut self, fd: RawFd) -> io::Result<()> {
        let Some(client) = self.clients.connections.get_mut(&fd) else {
            return Ok(());
        };
        let mut bytes = [0; PIECE];
        match socket::read_with_descriptors(fd, &mut bytes, 1) {
            Ok(Received::Nothing) => return Ok(()),
            Ok(Received::Closed) | Err(_) => {
                self.disconnect(fd);
                return Ok(());
            }
            Ok(Received::Some(came)) => {
                client.unfinished.extend_from_slice(&bytes[..came.bytes]);
                if let Some(given) = came.descriptors.ok().and_then(|mut given| given.pop()) {
                    client.given = Some(given);
                }
            }
        }
        while let Some(client) = self.clients.connections.get_mut(&fd) {
            let Some(end) = client.unfinished.iter().position(|byte| *byte == b'\n') else {
                if client.unfinished.len() > LONGEST_REQUEST {
                    self.disconnect(fd);
                }
                return Ok(());
            };
            let line: Vec<u8> = client.unfinished.drain(..=end).collect();
            match serde_json::from_slice(&line).map_err(|error| error.to_string()) {
                Ok(Request::Hosts) => {
                    let hosts = self.host_states();
                    self.send_answer(fd, &Answer::Hosts { hosts })?;
                }
                request => self.clients.requests.push((fd, request)),
            }
        }
        Ok(())
    }

    /// Answer what clients have asked. Between two windows: within one, the answer would depend on which hosts have had
    /// their turns.
    pub fn answer_requests(&mut self) -> io::Result<()> {
        for (fd, request) in std::mem::take(&mut self.clients.requests) {
            let answer = match request {
                Ok(Request::Sleep { until_ns, turn }) if until_ns > self.scheduler.now => {
                    self.scheduler.gate.rest(turn);
                    self.clients.sleepers.push(Sleeper {
                        until: until_ns,
                        fd,
                        turn,
                    });
                    continue;
                }
                Ok(Request::Fork { seed }) => match self.fork(fd, seed) {
                    Some(answer) => answer,
                    // In the other lab, which has no clients yet: the requests that are left are not its own.
                    None => return Ok(()),
                },
                Ok(request) => self.answer(fd, request),
                Err(error) => Answer::Refused { error },
            };
            self.send_answer(fd, &answer)?;
        }
        Ok(())
    }

    /// Answer the clients that have slept until now. Their turns are busy again, so time stands still until they wait for
    /// something else.
    pub fn wake_sleepers(&mut self) -> io::Result<()> {
        let now_ns = self.scheduler.now;
        let (due, asleep) = std::mem::take(&mut self.clients.sleepers)
            .into_iter()
            .partition(|one| one.until <= now_ns);
        self.clients.sleepers = asleep;
        for Sleeper { fd, turn, .. } in due {
            self.scheduler.gate.resume(turn);
            let passes = false;
            self.send_answer(fd, &Answer::Now { now_ns, passes })?;
        }
        Ok(())
    }

    /// Tell the clients that capture of the frames that ports have sent since this was last done.
    pub fn tell_captured(&mut self) -> io::Result<()> {
        let Some(captured) = self.scheduler.captured.as_mut() else {
            return Ok(());
        };
        if captured.is_empty() {
            return Ok(());
        }
        let mut text = Vec::new();
        for frame in std::mem::take(captured) {
            serde_json::to_writer(&mut text, &frame)?;
            text.push(b'\n');
        }
        let connections = self.clients.connections.iter();
        let capturing: Vec<RawFd> = connections
            .filter(|(_, client)| client.captures)
            .map(|(fd, _)| *fd)
            .collect();
        if capturing.is_empty() {
            self.scheduler.captured = None;
        }
        for fd in capturing {
            self.send_text(fd, &text)?;
        }
        Ok(())
    }

    /// The same in the midst of a window, as soon as there are many: a kernel sends as many in its turn as it likes.
    pub fn tell_if_much_is_captured(&mut self) -> io::Result<()> {
        let captured = self.scheduler.captured.as_ref();
        if captured.is_some_and(|frames| frames.len() >= MOST_CAPTURED) {
            self.tell_captured()?;
        }
        Ok(())
    }

    fn send_answer(&mut self, fd: RawFd, answer: &Answer) -> io::Result<()> {
        let mut text = serde_json::to_vec(answer)?;
        text.push(b'\n');
        self.send_text(fd, &text)
    }

    fn send_text(&mut self, fd: RawFd, text: &[u8]) -> io::Result<()> {
        let Some(client) = self.clients.connections.get_mut(&fd) else {
            return Ok(());
        };
        let waited = client.unread.waiting() > 0;
        if client.unread.send(fd, text).is_err() || client.unread.waiting() > MOST_UNREAD {
            self.disconnect(fd);
        } else if client.unread.waiting() > 0 && !waited {
            self.sources
                .set_interest(&client.socket, Interest::InputAndRoom)?;
        }
        Ok(())
    }

    /// A client has read some of its answers, so that more can be written.
    pub fn flush_answers(&mut self, fd: RawFd) -> io::Result<()> {
        let Some(client) = self.clients.connections.get_mut(&fd) else {
            return Ok(());
        };
        if client.unread.flush(fd).is_err() {
            self.disconnect(fd);
        } else if client.unread.waiting() == 0 {
            self.sources.set_interest(&client.socket, Interest::Input)?;
        }
        Ok(())
    }

    fn answer(&mut self, fd: RawFd, request: Request) -> Answer {
        match request {
            Request::Turn => self.begin_turn(fd),
            Request::Rest => self.set_turn_busy(fd, false),
            Request::Resume => self.set_turn_busy(fd, true),
            Request::Now | Request::Sleep { .. } => Answer::Now {
                now_ns: self.scheduler.now,
                passes: self.scheduler.passes(self.clients.next_wakeup().is_some()),
            },
            Request::Hosts => Answer::Hosts {
                hosts: self.host_states(),
            },
            Request::Capture => self.begin_capture(fd),
            Request::Wires => Answer::Wires {
                wires: self.scheduler.links.states(self.scheduler.now),
            },
            Request::Course => Answer::Course {
                course: self.scheduler.course_state(),
            },
            Request::Storms => Answer::Storms {
                storms: self.scheduler.storms.borrow().struck(),
            },
            Request::PauseHost { host } => self.pause(host, true),
            Request::ResumeHost { host } => self.pause(host, false),
            Request::Fork { .. } => Answer::Refused {
                error: "a lab forks between two windows".into(),
            },
            Request::Set { wires } => match self.scheduler.set_wires(wires) {
                Ok(()) => Answer::Done {},
                Err(error) => Answer::Refused { error },
            },
            Request::SetTopology(topology) => self.set_topology(topology),
        }
    }

    /// Take the socket that came with a request of this client's.
    pub fn take_given(&mut self, fd: RawFd) -> Option<OwnedFd> {
        self.clients.connections.get_mut(&fd)?.given.take()
    }

    fn begin_turn(&mut self, fd: RawFd) -> Answer {
        self.clients.turns += 1;
        let turn = self.clients.turns;
        self.scheduler.gate.begin_turn(turn);
        if let Some(client) = self.clients.connections.get_mut(&fd) {
            client.turn = Some(turn);
        }
        Answer::Turn { turn }
    }

    fn begin_capture(&mut self, fd: RawFd) -> Answer {
        if let Some(client) = self.clients.connections.get_mut(&fd) {
            client.captures = true;
        }
        self.scheduler.captured.get_or_insert_with(Vec::new);
        Answer::Done {}
    }

    fn set_turn_busy(&mut self, fd: RawFd, busy: bool) -> Answer {
        let client = self.clients.connections.get(&fd);
        let Some(turn) = client.and_then(|client| client.turn) else {
            return Answer::Refused {
                error: "this client has no turn".into(),
            };
        };
        self.scheduler.gate.set_busy(turn, busy);
        Answer::Done {}
    }

    fn host_states(&self) -> Vec<HostState> {
        let state = |host: &Host| match host.state {
            _ if host.is_paused() => "paused",
            State::Starting | State::Fresh(_) => "starting",
            State::Waiting => "waiting",
            State::Running => "running",
        };
        let specs = self.scheduler.topology.hosts.iter().enumerate();
        specs
            .map(|(index, spec)| {
                let kernel = spec.within.as_ref().map_or(index, |within| within.kernel);
                let host = self.scheduler.hosts[kernel].as_ref();
                HostState {
                    name: spec.name.clone(),
                    state: host.map_or("absent", state),
                    turn_s: host.map_or(0, Host::turn_lasts_s),
                    lost: self.starts[kernel].lost.clone(),
                }
            })
            .collect()
    }

    fn pause(&mut self, host: usize, pauses: bool) -> Answer {
        if self.scheduler.pause(host, pauses) {
            Answer::Done {}
        } else {
            Answer::Refused {
                error: format!("host {host} is not up"),
            }
        }
    }

    fn set_topology(&mut self, topology: Topology) -> Answer {
        let count = topology.hosts.len();
        if let Err(error) = self.scheduler.set_topology(topology) {
            return Answer::Refused {
                error: error.to_string(),
            };
        }
        self.release_ended();
        self.starts.resize(count, Start::default());
        Answer::Done {}
    }

    /// A client has gone, or is no longer served. Its turn ends with its connection.
    fn disconnect(&mut self, fd: RawFd) {
        self.clients.requests.retain(|(client, _)| *client != fd);
        self.clients.sleepers.retain(|sleeper| sleeper.fd != fd);
        if let Some(client) = self.clients.connections.remove(&fd) {
            self.sources.remove(&client.socket);
            if let Some(turn) = client.turn {
                self.scheduler.gate.end_turn(turn);
            }
            drop(client);
            self.clients.something_was_closed();
        }
    }
}
