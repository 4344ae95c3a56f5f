//! The descriptors that the clock waits for, and whose each is.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// Whom a descriptor leads to. Hosts and devices are numbers.
#[derive(Clone, Copy)]
pub enum Source {
    /// The supervisor.
    Control,
    /// New clients.
    Listener,
    Watchdog,
    Client,
    /// A kernel's calendar.
    Calendar(usize),
    /// A host's control line, at whose other end is the supervisor.
    Line(usize),
    /// A kernel's console or card: (host, device).
    Device(usize, usize),
}

/// What a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    Input,
    /// Also for room to write.
    InputAndRoom,
    /// For nothing at present.
    Nothing,
}

pub struct Sources {
    epoll: Epoll,
    by_fd: HashMap<RawFd, Source>,
}

impl Sources {
    pub fn new() -> io::Result<Sources> {
        Ok(Sources {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            by_fd: HashMap::new(),
        })
    }

    /// Watch a descriptor for input.
    pub fn add(&mut self, fd: &(impl AsFd + AsRawFd), source: Source) -> io::Result<()> {
        let number = fd.as_raw_fd();
        self.epoll
            .add(fd, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
        self.by_fd.insert(number, source);
        Ok(())
    }

    pub fn set_interest(&self, fd: &(impl AsFd + AsRawFd), interest: Interest) -> io::Result<()> {
        let flags = match interest {
            Interest::Input => EpollFlags::EPOLLIN,
            Interest::InputAndRoom => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
            Interest::Nothing => EpollFlags::empty(),
        };
        let mut event = EpollEvent::new(flags, fd.as_raw_fd() as u64);
        Ok(self.epoll.modify(fd, &mut event)?)
    }

    /// Watch a descriptor no longer, if it is watched.
    pub fn remove(&mut self, fd: &(impl AsFd + AsRawFd)) {
        if self.by_fd.remove(&fd.as_raw_fd()).is_some() {
            let _ = self.epoll.delete(fd);
        }
    }

    /// Whose a descriptor is; None if it is no longer watched.
    pub fn of(&self, fd: RawFd) -> Option<Source> {
        self.by_fd.get(&fd).copied()
    }

    /// Wait until descriptors are ready, at most for the given time. The events' data are the descriptors' numbers.
    pub fn wait<'a>(
        &self,
        events: &'a mut [EpollEvent],
        timeout: EpollTimeout,
    ) -> io::Result<&'a [EpollEvent]> {
        match self.epoll.wait(events, timeout) {
            Err(Errno::EINTR) => Ok(&[]),
            other => Ok(&events[..other?]),
        }
    }
}
