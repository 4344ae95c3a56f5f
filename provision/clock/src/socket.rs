//! Reads and writes that never wait, so that a kernel that sends half a message, or does not read, holds up nobody.
//!
//! A kernel writes each of its messages by one call. So a part of a message is an error, and not the beginning of one.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{
    recv, recvmsg, send, sendmsg, ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr,
};

/// How many descriptors may come with a message.
const MOST_DESCRIPTORS: usize = 64;

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

/// Read one message, or as much of a stream as fits. Returns the number of bytes, and the descriptors that came with them.
pub fn read_with_descriptors(
    fd: RawFd,
    bytes: &mut [u8],
) -> io::Result<Received<(usize, Vec<OwnedFd>)>> {
    let mut space = nix::cmsg_space!([RawFd; MOST_DESCRIPTORS]);
    let mut parts = [IoSliceMut::new(bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let received = match recvmsg::<UnixAddr>(fd, &mut parts, Some(&mut space), flags) {
        Err(Errno::EINTR | Errno::EAGAIN) => return Ok(Received::Nothing),
        Err(Errno::ECONNRESET) => return Ok(Received::Closed),
        other => other?,
    };
    let mut descriptors = Vec::new();
    for part in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = part {
            // SAFETY: the kernel has just made these descriptors for this process.
            descriptors.extend(
                numbers
                    .into_iter()
                    .map(|number| unsafe { OwnedFd::from_raw_fd(number) }),
            );
        }
    }
    Ok(if received.bytes == 0 {
        Received::Closed
    } else {
        Received::Some((received.bytes, descriptors))
    })
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
