//! Reads and writes that never wait, so that a kernel that sends half a message, or does not read, holds up nobody.
//!
//! A kernel writes each of its messages by one call. So a part of a message is an error, and not the beginning of one.

use std::io::{self, IoSlice};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{recv, send, sendmsg, ControlMessage, MsgFlags, UnixAddr};

/// How many descriptors Linux lets a message have: SCM_MAX_FD.
pub const MOST_DESCRIPTORS: usize = 253;

/// What a read came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<T> {
    /// There is nothing to read now.
    Nothing,
    /// The other side has closed the socket.
    Closed,
    Some(T),
}

/// Read what there is, as far as it fits. Returns the number of bytes.
pub fn read_some(fd: RawFd, bytes: &mut [u8]) -> io::Result<Received<usize>> {
    match recv(fd, bytes, MsgFlags::MSG_DONTWAIT) {
        Ok(0) | Err(Errno::ECONNRESET) => Ok(Received::Closed),
        Ok(count) => Ok(Received::Some(count)),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(Received::Nothing),
        Err(error) => Err(error.into()),
    }
}

/// Read a message of exactly as many bytes as fit.
pub fn read_message(fd: RawFd, bytes: &mut [u8]) -> io::Result<Received<()>> {
    Ok(match read_some(fd, bytes)? {
        Received::Nothing => Received::Nothing,
        Received::Closed => Received::Closed,
        Received::Some(count) if count == bytes.len() => Received::Some(()),
        Received::Some(_) => return Err(part_of_a_message()),
    })
}

/// A message, or a piece of a stream, that may come with descriptors.
#[derive(Debug)]
pub struct Came {
    pub bytes: usize,
    /// An error if not all have come: there were more than might come, or this process may open no more files.
    pub descriptors: io::Result<Vec<OwnedFd>>,
}

/// Read one message, or as much of a stream as fits, and up to `most` descriptors with it.
///
/// Linux opens descriptors here also where it then reports that there was no room for all. So whatever else the message is, each
/// is owned before anything is judged, and closed unless somebody keeps it.
pub fn read_with_descriptors(
    fd: RawFd,
    bytes: &mut [u8],
    most: usize,
) -> io::Result<Received<Came>> {
    let numbers = (most * size_of::<RawFd>()) as u32;
    // SAFETY: the two compute lengths.
    let (space, length) = unsafe { (libc::CMSG_SPACE(numbers), libc::CMSG_LEN(numbers)) };
    // Of u64, so that it is aligned for a head.
    let mut control = vec![0u64; (space as usize).div_ceil(size_of::<u64>())];
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: a head without an address, whose pointers lead to what lives longer than it.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    head.msg_iov = &mut part;
    head.msg_iovlen = 1;
    head.msg_control = control.as_mut_ptr().cast();
    // Without the padding, where one more would have room.
    head.msg_controllen = length as _;
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the head leads to as many bytes as it says.
    let count = match Errno::result(unsafe { libc::recvmsg(fd, &mut head, flags) }) {
        Err(Errno::EINTR | Errno::EAGAIN) => return Ok(Received::Nothing),
        Err(Errno::ECONNRESET) => return Ok(Received::Closed),
        other => other? as usize,
    };
    // SAFETY: recvmsg has just filled it.
    let descriptors = unsafe { owned(&head) };
    if count == 0 {
        return Ok(Received::Closed);
    }
    let descriptors = match head.msg_flags & libc::MSG_CTRUNC {
        0 => Ok(descriptors),
        _ if descriptors.len() >= most => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it sent more than {most} descriptors at once"),
        )),
        _ => Err(io::Error::other(
            "the clock may open no more files, and needs its descriptors",
        )),
    };
    Ok(Received::Some(Came {
        bytes: count,
        descriptors,
    }))
}

/// Have each message that is read by `read_with_sender` say who has sent it.
pub fn ask_for_senders(fd: RawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: an int, whose size is told.
    let failed = unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_PASSCRED,
            (&raw const on).cast(),
            size_of_val(&on) as u32,
        )
    };
    Errno::result(failed).map(drop).map_err(io::Error::from)
}

/// Wait for at most so many milliseconds for a message of exactly as many bytes as fit. Returns the process that has sent it, as
/// this machine knows it; None where that was not asked for.
pub fn read_with_sender(
    fd: RawFd,
    bytes: &mut [u8],
    most_ms: i32,
) -> io::Result<Option<libc::pid_t>> {
    let mut waits = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry.
    if Errno::result(unsafe { libc::poll(&mut waits, 1, most_ms) })? == 0 {
        return Err(io::Error::other("it does not answer"));
    }
    // Of u64, so that it is aligned for a head.
    let mut control = [0u64; 8];
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: a head without an address, whose pointers lead to what lives longer than it.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    head.msg_iov = &mut part;
    head.msg_iovlen = 1;
    head.msg_control = control.as_mut_ptr().cast();
    head.msg_controllen = size_of_val(&control) as _;
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the head leads to as many bytes as it says, and recvmsg has filled what is read of it.
    unsafe {
        if Errno::result(libc::recvmsg(fd, &mut head, flags))? as usize != bytes.len() {
            return Err(part_of_a_message());
        }
        drop(owned(&head));
        let first = libc::CMSG_FIRSTHDR(&head);
        match first.as_ref() {
            Some(own)
                if (own.cmsg_level, own.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) =>
            {
                let sender: *const libc::ucred = libc::CMSG_DATA(first).cast();
                Ok(Some(sender.read_unaligned().pid))
            }
            _ => Ok(None),
        }
    }
}

/// All descriptors that have been opened here for a message, also for one of whose descriptors some are missing.
///
/// # Safety
/// recvmsg(2) has filled the head, and nobody else has looked into it.
unsafe fn owned(head: &libc::msghdr) -> Vec<OwnedFd> {
    let mut descriptors = Vec::new();
    let mut part = libc::CMSG_FIRSTHDR(head);
    while let Some(own) = part.as_ref() {
        if (own.cmsg_level, own.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            let bytes = own.cmsg_len - libc::CMSG_LEN(0) as usize;
            let first: *const RawFd = libc::CMSG_DATA(part).cast();
            for index in 0..bytes / size_of::<RawFd>() {
                descriptors.push(OwnedFd::from_raw_fd(first.add(index).read_unaligned()));
            }
        }
        part = libc::CMSG_NXTHDR(head, part);
    }
    descriptors
}

/// The error for a message that did not come whole.
pub fn part_of_a_message() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it sent a part of a message")
}

/// Write as many of the bytes as there is room for. Returns how many.
pub fn write_some(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    match send(fd, bytes, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT) {
        Ok(count) => Ok(count),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Write a message to a kernel. A kernel reads each before it asks for another, so there is room unless it does not read; that is
/// an error.
pub fn write_message(fd: RawFd, bytes: &[u8]) -> io::Result<()> {
    if write_some(fd, bytes)? == bytes.len() {
        Ok(())
    } else {
        Err(does_not_read())
    }
}

/// The same with descriptors.
pub fn write_with_descriptors(fd: RawFd, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
    let (parts, rights) = (
        [IoSlice::new(bytes)],
        [ControlMessage::ScmRights(descriptors)],
    );
    match sendmsg::<UnixAddr>(
        fd,
        &parts,
        &rights,
        MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT,
        None,
    ) {
        Ok(count) if count == bytes.len() => Ok(()),
        Ok(_) | Err(Errno::EAGAIN) => Err(does_not_read()),
        Err(error) => Err(error.into()),
    }
}

fn does_not_read() -> io::Error {
    io::Error::other("it does not read what it is told")
}

/// Bytes for a reader who may be slow.
#[derive(Default)]
pub struct Outbox {
    waiting: Vec<u8>,
}

impl Outbox {
    /// How many bytes wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Write these bytes after those that wait; what there is no room for waits, too.
    pub fn send(&mut self, fd: RawFd, bytes: &[u8]) -> io::Result<()> {
        let written = if self.waiting.is_empty() {
            write_some(fd, bytes)?
        } else {
            0
        };
        self.waiting.extend_from_slice(&bytes[written..]);
        Ok(())
    }

    /// Write as many of the waiting bytes as there is room for. False if there was room for none.
    pub fn flush(&mut self, fd: RawFd) -> io::Result<bool> {
        let written = write_some(fd, &self.waiting)?;
        self.waiting.drain(..written);
        if self.waiting.is_empty() {
            self.waiting = Vec::new();
        }
        Ok(written > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_part_of_a_message_is_none() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut bytes = [0; 16];
        assert_eq!(
            read_message(ours.as_raw_fd(), &mut bytes).unwrap(),
            Received::Nothing
        );
        write_message(theirs.as_raw_fd(), b"12345").unwrap();
        assert!(read_message(ours.as_raw_fd(), &mut bytes).is_err());
        write_message(theirs.as_raw_fd(), &[7; 16]).unwrap();
        assert_eq!(
            read_message(ours.as_raw_fd(), &mut bytes).unwrap(),
            Received::Some(())
        );
        drop(theirs);
        assert_eq!(
            read_message(ours.as_raw_fd(), &mut bytes).unwrap(),
            Received::Closed
        );
    }

    /// Whether all descriptors of the socket's other end are closed.
    fn are_closed(other_end: &UnixStream) -> bool {
        read_some(other_end.as_raw_fd(), &mut [0]).unwrap() == Received::Closed
    }

    #[test]
    fn descriptors_are_closed_unless_they_are_kept() {
        // As many as fit, one more, and as many as Linux lets a message have.
        for (number, fits) in [(1, true), (8, true), (9, false), (MOST_DESCRIPTORS, false)] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (kept, sent) = UnixStream::pair().unwrap();
            let numbers = vec![sent.as_raw_fd(); number];
            write_with_descriptors(theirs.as_raw_fd(), b"x", &numbers).unwrap();
            drop(sent);
            let came = read_with_descriptors(ours.as_raw_fd(), &mut [0; 9], 8).unwrap();
            let Received::Some(Came {
                bytes: 1,
                descriptors,
            }) = came
            else {
                panic!("{came:?}");
            };
            match descriptors {
                Ok(came) => assert!(fits && came.len() == number),
                Err(error) => assert!(
                    !fits && error.to_string().contains("more than 8"),
                    "{error}"
                ),
            }
            assert!(are_closed(&kept));
        }
    }

    #[test]
    fn descriptors_of_a_message_without_bytes_are_closed() {
        let flags = nix::sys::socket::SockFlag::empty();
        let (family, kind) = (
            nix::sys::socket::AddressFamily::Unix,
            nix::sys::socket::SockType::SeqPacket,
        );
        let (ours, theirs) = nix::sys::socket::socketpair(family, kind, None, flags).unwrap();
        let (kept, sent) = UnixStream::pair().unwrap();
        write_with_descriptors(theirs.as_raw_fd(), b"", &[sent.as_raw_fd(); 3]).unwrap();
        drop(sent);
        let came = read_with_descriptors(ours.as_raw_fd(), &mut [0; 9], 8).unwrap();
        assert!(matches!(came, Received::Closed));
        assert!(are_closed(&kept));
    }

    #[test]
    fn descriptors_that_nobody_asks_for_are_closed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (kept, sent) = UnixStream::pair().unwrap();
        write_with_descriptors(theirs.as_raw_fd(), &[7; 16], &[sent.as_raw_fd(); 99]).unwrap();
        drop(sent);
        let read = read_message(ours.as_raw_fd(), &mut [0; 16]).unwrap();
        assert_eq!(read, Received::Some(()));
        assert!(are_closed(&kept));
    }

    #[test]
    fn who_does_not_read_is_not_waited_for() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let error = (0..1_000_000).find_map(|_| write_message(ours.as_raw_fd(), &[0; 16]).err());
        assert!(error.is_some());
    }

    #[test]
    fn what_waits_comes_in_order_when_it_is_read() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut outbox = Outbox::default();
        let all: Vec<u8> = (0..3_000_000u32)
            .map(|number| (number % 251) as u8)
            .collect();
        all.chunks(70_000)
            .for_each(|piece| outbox.send(ours.as_raw_fd(), piece).unwrap());
        assert!(outbox.waiting() > 1_000_000);
        let (mut read, mut piece) = (Vec::new(), [0; 65536]);
        while read.len() < all.len() {
            let count = theirs.read(&mut piece).unwrap();
            read.extend_from_slice(&piece[..count]);
            outbox.flush(ours.as_raw_fd()).unwrap();
        }
        assert!(read == all && outbox.waiting() == 0);
    }
}
