//! A lab becomes two: each kernel, and this process, at a moment in which no kernel has a turn.
//!
//! Each kernel is told by its calendar, and becomes two while it waits (provision/kernel/patches/0028). Then this process does:
//! the other one has the other kernels, with what is under way to them, and a supervisor and clients of its own. Neither the
//! kernels nor the wires know of it. What is recorded of the course stays with the first lab.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};

use crate::calendar::{Calendar, Message, Op, SIZE};
use crate::clients::Clients;
use crate::host::State;
use crate::orders::{self, Answer, Forked, ForkedKernel};
use crate::server::Server;
use crate::socket::{self, Received};
use crate::sources::{Source, Sources};
use crate::watchdog::Watchdog;
use crate::wire::number_of;

/// The longest message of the other supervisor's, in bytes.
const LONGEST_ORDER: usize = 1 << 12;
/// How many descriptors come with one.
const MOST_GIVEN: usize = 5;
/// How long a kernel may take to become two, in milliseconds of this machine's clock: it copies its memory meanwhile.
const LONGEST_FORK_MS: i32 = 60_000;

/// What the other lab's supervisor has sent.
struct Orders {
    control: OwnedFd,
    listener: OwnedFd,
    log: OwnedFd,
    hosts: Vec<HostOrder>,
}

struct HostOrder {
    host: usize,
    line: OwnedFd,
    console: OwnedFd,
    disk: OwnedFd,
    /// The directory that guests of the first kernel may mount, and that of the other one's.
    shared: [OwnedFd; 2],
}

/// The other kernel of a host: our ends of what leads to it.
struct Other {
    host: usize,
    line: OwnedFd,
    calendar: Calendar,
    sockets: Vec<OwnedFd>,
    memory: OwnedFd,
    process: i32,
}

impl Server {
    /// Answer a client's request for a fork. None in the process that is the other lab's clock.
    pub fn fork(&mut self, fd: RawFd, seed: u64) -> Option<Answer> {
        let done = self.take_given(fd).map_or_else(
            || Err(io::Error::other("no socket of a supervisor came with it")),
            |control| self.try_fork(control, seed),
        );
        match done {
            Ok(Some(forked)) => Some(Answer::Forked(forked)),
            Ok(None) => None,
            Err(error) => Some(Answer::Refused {
                error: error.to_string(),
            }),
        }
    }

    fn try_fork(&mut self, control: OwnedFd, seed: u64) -> io::Result<Option<Forked>> {
        let orders = read_orders(control)?;
        self.require_ready(&orders)?;
        let Orders {
            control,
            listener,
            log,
            hosts,
        } = orders;
        let mut others = Vec::new();
        for order in hosts {
            if self.scheduler.hosts[order.host].is_some() {
                others.push(self.order_one(order, seed)?);
            }
        }
        for other in &mut others {
            self.hear_both(other)?;
        }
        self.scheduler.course.write_out();
        // SAFETY: nobody waits for the process that begins, so it is to leave nothing behind when it ends. Only this thread
        // goes on there, and the other one holds nothing but the allocator's lock, which fork(3) sees to.
        let process = unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            libc::fork()
        };
        match process {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                if let Err(error) = self.become_other(control, listener, log, others) {
                    eprintln!("clock: it could not become the clock of the other lab: {error}");
                    std::process::exit(1);
                }
                Ok(None)
            }
            clock => Ok(Some(self.forked(clock, &others))),
        }
    }

    fn require_ready(&self, orders: &Orders) -> io::Result<()> {
        let hosts = &self.scheduler.hosts;
        let ordered = |index: usize| orders.hosts.iter().any(|order| order.host == index);
        if orders.hosts.iter().any(|order| order.host >= hosts.len()) {
            return Err(io::Error::other("the lab has no host of that number"));
        }
        for (index, host) in hosts.iter().enumerate() {
            let Some(host) = host else { continue };
            let name = &self.scheduler.topology.hosts[index].name;
            if host.state != State::Waiting || host.is_booting() {
                return Err(io::Error::other(format!("{name} has not come up")));
            }
            if !ordered(index) {
                return Err(io::Error::other(format!("nothing has come for {name}")));
            }
        }
        Ok(())
    }

    /// Have a kernel become two.
    fn order_one(&self, order: HostOrder, seed: u64) -> io::Result<Other> {
        let host = self.scheduler.hosts[order.host]
            .as_ref()
            .ok_or_else(|| io::Error::other("its kernel does not run"))?;
        let memory = memfd_create(c"memory", MemFdCreateFlag::MFD_CLOEXEC)?;
        let (ours, theirs) = pair()?;
        socket::ask_for_senders(ours.as_raw_fd())?;
        let calendar = host.calendar.twin(ours)?;
        let pairs = host.devices.iter().map(|_| pair());
        let (sockets, ends): (Vec<OwnedFd>, Vec<OwnedFd>) =
            pairs.collect::<io::Result<Vec<_>>>()?.into_iter().unzip();
        let mut files = vec![
            theirs.as_raw_fd(),
            calendar.page_fd(),
            memory.as_raw_fd(),
            order.console.as_raw_fd(),
            order.disk.as_raw_fd(),
            order.shared[0].as_raw_fd(),
            order.shared[1].as_raw_fd(),
        ];
        files.extend(ends.iter().map(|end| end.as_raw_fd()));
        let seed = match seed {
            0 => 0,
            seed => number_of(seed, order.host as u64),
        };
        host.calendar.order_fork(seed, &files)?;
        Ok(Other {
            host: order.host,
            line: order.line,
            calendar,
            sockets,
            memory,
            process: 0,
        })
    }

    /// Wait until a kernel and its other one have both answered.
    fn hear_both(&self, other: &mut Other) -> io::Result<()> {
        let name = &self.scheduler.topology.hosts[other.host].name;
        let say = |error: io::Error| io::Error::other(format!("{name} does not fork: {error}"));
        if let Some(host) = &self.scheduler.hosts[other.host] {
            let first = hear(host.calendar.fd()).map_err(say)?.0;
            if (first.time as i64) < 0 {
                let error = io::Error::from_raw_os_error(-(first.time as i64) as i32);
                return Err(say(error));
            }
        }
        let sender = hear(other.calendar.fd()).map_err(say)?.1;
        other.process = sender.ok_or_else(|| io::Error::other("nobody knows its process"))?;
        Ok(())
    }

    fn forked(&self, clock: i32, others: &[Other]) -> Forked {
        let kernels = others.iter().map(|other| ForkedKernel {
            host: other.host,
            process: other.process,
            start: self.starts[other.host].number,
            last_channel: self.scheduler.hosts[other.host]
                .as_ref()
                .map_or(0, |host| host.last_channel),
        });
        Forked {
            now_ns: self.scheduler.now,
            clock,
            hosts: kernels.collect(),
        }
    }

    /// This process is the other lab's clock from now on.
    fn become_other(
        &mut self,
        control: OwnedFd,
        listener: OwnedFd,
        log: OwnedFd,
        others: Vec<Other>,
    ) -> io::Result<()> {
        // SAFETY: plain numbers. It ends with the first lab's clock, as its kernels do with the first ones.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::dup2(log.as_raw_fd(), 1);
            libc::dup2(log.as_raw_fd(), 2);
        }
        self.sources = Sources::new()?;
        self.clients = Clients::default();
        self.watchdog = Watchdog::start()?;
        self.control = control;
        self.listener = listener;
        self.sources.add(&self.control, Source::Control)?;
        self.sources.add(&self.listener, Source::Listener)?;
        self.sources.add(self.watchdog.fd(), Source::Watchdog)?;
        self.scheduler.gate.forget_clients();
        self.scheduler.captured = None;
        self.scheduler.course.end_recording();
        for other in others {
            let Some(mut host) = self.scheduler.hosts[other.host].take() else {
                continue;
            };
            host.serve_another(
                other.line,
                other.calendar,
                other.sockets,
                &other.memory,
                other.process,
            )?;
            self.watch(other.host, &host)?;
            self.scheduler.hosts[other.host] = Some(host);
        }
        Ok(())
    }
}

/// Read all that the other lab's supervisor has sent before it had a client ask for the fork.
fn read_orders(control: OwnedFd) -> io::Result<Orders> {
    let (first, given): (orders::Fork, _) = read_order(&control)?;
    let [listener, log] = exactly(given)?;
    let mut hosts = Vec::new();
    for _ in 0..first.hosts {
        let (order, given): (orders::ForkedHost, _) = read_order(&control)?;
        let [line, console, disk, first, other] = exactly(given)?;
        hosts.push(HostOrder {
            host: order.host,
            line,
            console,
            disk,
            shared: [first, other],
        });
    }
    Ok(Orders {
        control,
        listener,
        log,
        hosts,
    })
}

fn read_order<T: serde::de::DeserializeOwned>(control: &OwnedFd) -> io::Result<(T, Vec<OwnedFd>)> {
    let mut bytes = [0; LONGEST_ORDER];
    match socket::read_with_descriptors(control.as_raw_fd(), &mut bytes, MOST_GIVEN)? {
        Received::Some(came) => Ok((
            serde_json::from_slice(&bytes[..came.bytes])?,
            came.descriptors?,
        )),
        _ => Err(io::Error::other("the other lab's supervisor says nothing")),
    }
}

fn exactly<const COUNT: usize>(given: Vec<OwnedFd>) -> io::Result<[OwnedFd; COUNT]> {
    given
        .try_into()
        .map_err(|_| io::Error::other("an order without its descriptors"))
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC;
    Ok(socketpair(
        AddressFamily::Unix,
        SockType::Stream,
        None,
        flags,
    )?)
}

/// A kernel's answer, and its process where that was asked for.
fn hear(calendar: &OwnedFd) -> io::Result<(Message, Option<i32>)> {
    let mut bytes = [0; SIZE];
    let process = socket::read_with_sender(calendar.as_raw_fd(), &mut bytes, LONGEST_FORK_MS)?;
    let message = Message::decode(&bytes).filter(|message| message.op == Op::Ack);
    let message = message.ok_or_else(|| io::Error::other("its answer is none"))?;
    Ok((message, process))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_that_has_sent_too_little_is_refused() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(read_orders(OwnedFd::from(ours)).is_err());
        let (ours, others) = std::os::unix::net::UnixStream::pair().unwrap();
        let numbers = [theirs.as_raw_fd()];
        socket::write_with_descriptors(others.as_raw_fd(), b"{\"hosts\": 1}", &numbers).unwrap();
        assert!(read_orders(OwnedFd::from(ours)).is_err());
    }

    #[test]
    fn a_message_says_who_has_sent_it() {
        let (ours, theirs) = pair().unwrap();
        socket::ask_for_senders(ours.as_raw_fd()).unwrap();
        socket::write_message(theirs.as_raw_fd(), b"12345678").unwrap();
        let mut bytes = [0; 8];
        let sender = socket::read_with_sender(ours.as_raw_fd(), &mut bytes, 1000).unwrap();
        assert_eq!(sender, Some(std::process::id() as i32));
        assert_eq!(&bytes, b"12345678");
        assert!(socket::read_with_sender(ours.as_raw_fd(), &mut bytes, 1).is_err());
    }
}
