//! What clients ask of the clock, and what it answers.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{accept4, SockFlag};

use crate::host::{Host, State};
use crate::lab::{expect, watch, wires, Lab, Port, Source, PIECE};
use crate::orders::{Answer, HostState, Layout, PortSettings, Question, WireState};
use crate::socket::{self, Came, Outbox};

const LONGEST_QUESTION: usize = 16 << 20;
/// A client that leaves so much unread is dismissed.
const MOST_UNREAD: usize = 64 << 20;

pub struct Client {
    socket: OwnedFd,
    turn: Option<u64>,
    said: Vec<u8>,
    unread: Outbox,
}

/// A client that waits for a moment of the clock, and for no host.
pub struct Sleeper {
    pub until: u64,
    fd: RawFd,
    turn: u64,
}

impl Lab {
    pub fn accept(&mut self) -> io::Result<()> {
        let number = match accept4(self.listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC) {
            Err(Errno::ECONNABORTED | Errno::EINTR) => return Ok(()),
            other => other?,
        };
        // SAFETY: accept4 has just made it.
        let socket = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(number) };
        watch(&self.epoll, &mut self.sources, &socket, Source::Client)?;
        self.clients.insert(
            number,
            Client {
                socket,
                turn: None,
                said: Vec::new(),
                unread: Outbox::default(),
            },
        );
        Ok(())
    }

    pub fn hear_client(&mut self, fd: RawFd) -> io::Result<()> {
        let Some(client) = self.clients.get_mut(&fd) else {
            return Ok(());
        };
        let mut bytes = [0; PIECE];
        match socket::read_some(fd, &mut bytes) {
            Ok(Came::Nothing) => return Ok(()),
            Ok(Came::Gone) | Err(_) => {
                self.dismiss(fd);
                return Ok(());
            }
            Ok(Came::Some(count)) => client.said.extend_from_slice(&bytes[..count]),
        }
        while let Some(client) = self.clients.get_mut(&fd) {
            let Some(end) = client.said.iter().position(|byte| *byte == b'\n') else {
                if client.said.len() > LONGEST_QUESTION {
                    self.dismiss(fd);
                }
                return Ok(());
            };
            let line: Vec<u8> = client.said.drain(..=end).collect();
            match serde_json::from_slice(&line).map_err(|error| error.to_string()) {
                Ok(Question::Hosts) => self.tell(
                    fd,
                    &Answer::Hosts {
                        hosts: self.host_states(),
                    },
                )?,
                question => self.asked.push((fd, question)),
            }
        }
        Ok(())
    }

    /// Between two windows: what a client does within one would depend on which hosts have done with it.
    pub fn answer_questions(&mut self) -> io::Result<()> {
        for (fd, question) in std::mem::take(&mut self.asked) {
            let answer = match question {
                Ok(Question::Sleep { until_ns, turn }) if until_ns > self.now => {
                    self.gate.rest(turn);
                    self.sleepers.push(Sleeper {
                        until: until_ns,
                        fd,
                        turn,
                    });
                    continue;
                }
                Ok(question) => self.answer(fd, question),
                Err(error) => Answer::Refused { error },
            };
            self.tell(fd, &answer)?;
        }
        Ok(())
    }

    /// Who has slept until now is busy again: time stands still until it waits for something else.
    pub fn wake(&mut self) -> io::Result<()> {
        let (due, asleep) = std::mem::take(&mut self.sleepers)
            .into_iter()
            .partition(|one| one.until <= self.now);
        self.sleepers = asleep;
        for Sleeper { fd, turn, .. } in due {
            self.gate.resume(turn);
            self.tell(
                fd,
                &Answer::Now {
                    now_ns: self.now,
                    passes: false,
                },
            )?;
        }
        Ok(())
    }

    fn tell(&mut self, fd: RawFd, answer: &Answer) -> io::Result<()> {
        let mut text = serde_json::to_vec(answer)?;
        text.push(b'\n');
        let Some(client) = self.clients.get_mut(&fd) else {
            return Ok(());
        };
        let waited = client.unread.waiting() > 0;
        if client.unread.send(fd, &text).is_err() || client.unread.waiting() > MOST_UNREAD {
            self.dismiss(fd);
        } else if client.unread.waiting() > 0 && !waited {
            expect(
                &self.epoll,
                &client.socket,
                EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
            )?;
        }
        Ok(())
    }

    /// A client reads its answers.
    pub fn go_on_telling(&mut self, fd: RawFd) -> io::Result<()> {
        let Some(client) = self.clients.get_mut(&fd) else {
            return Ok(());
        };
        if client.unread.flush(fd).is_err() {
            self.dismiss(fd);
        } else if client.unread.waiting() == 0 {
            expect(&self.epoll, &client.socket, EpollFlags::EPOLLIN)?;
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
                let Some(turn) = turn else {
                    return Answer::Refused {
                        error: "this client has no turn".into(),
                    };
                };
                self.gate
                    .set_busy(turn, matches!(question, Question::Resume));
                Answer::Done {}
            }
            Question::Now | Question::Sleep { .. } => Answer::Now {
                now_ns: self.now,
                passes: self.passes(),
            },
            Question::Hosts => Answer::Hosts {
                hosts: self.host_states(),
            },
            Question::Wires => Answer::Wires {
                wires: self.wire_states(),
            },
            Question::Pause { host } => self.pause(host, true),
            Question::GoOn { host } => self.pause(host, false),
            Question::Set { wires } => self.set_wires(wires),
            Question::Lay(layout) => self.lay(layout),
        }
    }

    fn host_states(&self) -> Vec<HostState> {
        let all = self.layout.hosts.iter().zip(&self.hosts).zip(&self.starts);
        let state = |host: &Host| match host.state {
            _ if host.is_paused() => "paused",
            State::Starting | State::Fresh(_) => "starting",
            State::Waiting => "waiting",
            State::Running => "running",
        };
        all.map(|((order, host), (_, lost))| HostState {
            name: order.name.clone(),
            state: host.as_ref().map_or("absent", state),
            turn_s: host.as_ref().map_or(0, Host::turn_lasts_s),
            lost: lost.clone(),
        })
        .collect()
    }

    fn wire_states(&self) -> Vec<WireState> {
        let mut states = Vec::new();
        for (host, ports) in self.ports.iter().enumerate() {
            for (port, Port { wire, .. }) in ports.iter().enumerate() {
                let settings = PortSettings {
                    host,
                    port,
                    wire: wire.settings().clone(),
                };
                states.push(WireState {
                    settings,
                    counts: wire.counts(),
                    queued: wire.queued(self.now),
                });
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
            Answer::Refused {
                error: format!("host {index} is not up"),
            }
        }
    }

    fn set_wires(&mut self, wires: Vec<PortSettings>) -> Answer {
        let known = |one: &PortSettings| {
            self.ports
                .get(one.host)
                .is_some_and(|ports| one.port < ports.len())
        };
        if let Some(other) = wires.iter().find(|one| !known(one)) {
            return Answer::Refused {
                error: format!("host {} has no port {}", other.host, other.port),
            };
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
            Err(error) => {
                return Answer::Refused {
                    error: error.to_string(),
                }
            }
        };
        for index in 0..self.hosts.len() {
            if layout
                .hosts
                .get(index)
                .is_none_or(|host| host.ports != self.layout.hosts[index].ports)
            {
                self.remove(index);
            }
        }
        let known = self
            .layout
            .hosts
            .iter()
            .zip(std::mem::take(&mut self.ports))
            .enumerate();
        let mut kept: HashMap<(usize, String), Port> = known
            .flat_map(|(index, (host, ports))| {
                host.ports
                    .iter()
                    .cloned()
                    .zip(ports)
                    .map(move |(mac, port)| ((index, mac), port))
            })
            .collect();
        for (index, host) in layout.hosts.iter().enumerate() {
            for (port, mac) in ports[index].iter_mut().zip(&host.ports) {
                if let Some(before) = kept.remove(&(index, mac.clone())) {
                    *port = Port {
                        peer: port.peer,
                        ..before
                    };
                }
            }
        }
        self.hosts.resize_with(layout.hosts.len(), || None);
        self.starts.resize(layout.hosts.len(), (0, None));
        self.full.resize(layout.hosts.len(), false);
        self.ordered = vec![true; layout.hosts.len()];
        self.ports = ports;
        self.layout = layout;
        self.lookahead = self.least_ns();
        Answer::Done {}
    }

    pub fn least_ns(&self) -> u64 {
        self.ports
            .iter()
            .flatten()
            .map(|port| port.wire.least_ns())
            .min()
            .unwrap_or(1_000_000_000)
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
}
