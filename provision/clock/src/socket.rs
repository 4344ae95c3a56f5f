//! Whole reads and writes on sockets, with descriptors that travel along.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{recv, recvmsg, send, sendmsg, ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr};

const MOST_DESCRIPTORS: usize = 64;

/// Fill `bytes`. False when the other side has gone before the first of them.
pub fn read_whole(fd: RawFd, bytes: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < bytes.len() {
        match recv(fd, &mut bytes[filled..], MsgFlags::empty()) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(Errno::EINTR) => {}
            Err(Errno::ECONNRESET) if filled == 0 => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

pub fn write_whole(fd: RawFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match send(fd, bytes, MsgFlags::MSG_NOSIGNAL) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What is there to be read without waiting: none yet, or how much; 0 when the other side has gone.
pub fn read_some(fd: RawFd, bytes: &mut [u8]) -> io::Result<Option<usize>> {
    match recv(fd, bytes, MsgFlags::MSG_DONTWAIT) {
        Ok(count) => Ok(Some(count)),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
        Err(Errno::ECONNRESET) => Ok(Some(0)),
        Err(error) => Err(error.into()),
    }
}

pub fn write_with_descriptors(fd: RawFd, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
    let (parts, rights) = ([IoSlice::new(bytes)], [ControlMessage::ScmRights(descriptors)]);
    let sent = sendmsg::<UnixAddr>(fd, &parts, &rights, MsgFlags::MSG_NOSIGNAL, None)?;
    write_whole(fd, &bytes[sent..])
}

/// One message, or as much of a stream as fits, with the descriptors that came along.
pub fn read_with_descriptors(fd: RawFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = nix::cmsg_space!([RawFd; MOST_DESCRIPTORS]);
    let mut parts = [IoSliceMut::new(bytes)];
    let received = loop {
        match recvmsg::<UnixAddr>(fd, &mut parts, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC) {
            Err(Errno::EINTR) => {}
            Err(Errno::ECONNRESET) => return Ok((0, Vec::new())),
            other => break other?,
        }
    };
    let mut descriptors = Vec::new();
    for part in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = part {
            // SAFETY: the kernel has just made these descriptors for this process.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    Ok((received.bytes, descriptors))
}
