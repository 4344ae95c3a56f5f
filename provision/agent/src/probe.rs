//! Measures round-trip times by ICMP or ICMPv6 echo and prints each of them, in microseconds: JSON {"sent": N, "rtts_us": [...]}.
//!
//! It takes the kernel's receive times, as ping does. But ping rounds to three digits, so to a millisecond at 100 ms. A request is
//! sent when it is due, whether or not earlier ones were answered. The last ones are waited for at most 2 s.
//!
//! With an interval of 0 the requests are a train: they are sent one behind the other without a look at the time or for a reply,
//! and each round-trip time counts from the first. So they grow by the time that the slowest link needs for a frame.

use crate::system::done;
use std::collections::HashMap;
use std::io;
use std::mem::{size_of, zeroed};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const USAGE: &str = "usage: probe ADDRESS COUNT INTERVAL_S [SIZE]";
/// How long the last replies are waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked meanwhile whether all have come.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The receive buffer in bytes: room for the replies to a train of 512 full frames.
const BUFFER: libc::c_int = 4 << 20;
/// How many bytes a request has behind its header, unless SIZE says otherwise.
const USUAL_SIZE: usize = 56;
/// The length of an echo's header, in bytes (RFC 792; RFC 4443, section 4.1).
const HEADER: usize = 8;

/// What differs between ICMP and ICMPv6.
struct Version {
    family: libc::c_int,
    protocol: libc::c_int,
    request: u8,
    reply: u8,
    /// Whether a raw socket hands out a packet with its IP header (raw(7), RFC 3542).
    has_header: bool,
}

const ICMP: Version = Version {
    family: libc::AF_INET,
    protocol: libc::IPPROTO_ICMP,
    request: 8,
    reply: 0,
    has_header: true,
};
const ICMPV6: Version = Version {
    family: libc::AF_INET6,
    protocol: libc::IPPROTO_ICMPV6,
    request: 128,
    reply: 129,
    has_header: false,
};

pub fn run(words: &[String]) -> io::Result<()> {
    let usage = || io::Error::other(USAGE);
    let [address, count, interval_s, size @ ..] = words else {
        return Err(usage());
    };
    let address: IpAddr = address.parse().map_err(|_| usage())?;
    let count: u16 = count.parse().map_err(|_| usage())?;
    let interval = Duration::try_from_secs_f64(interval_s.parse().map_err(|_| usage())?)
        .map_err(|_| usage())?;
    let size = size
        .first()
        .map_or(Ok(USUAL_SIZE), |size| size.parse())
        .map_err(|_| usage())?;
    let mut probe = Probe::new(address)?;
    let start = Instant::now();
    let mut now = since_1970()?;
    for sequence in 0..count {
        if !interval.is_zero() {
            probe.receive_until(start + interval * u32::from(sequence))?;
            now = since_1970()?;
        }
        probe.send(sequence, size, now)?;
    }
    let deadline = Instant::now() + PATIENCE;
    while !probe.sent_ns.is_empty() && Instant::now() < deadline {
        probe.receive_until(deadline.min(Instant::now() + LOOK_EVERY))?;
    }
    let shown: Vec<String> = probe.rtts_us.iter().map(f64::to_string).collect();
    println!("{{\"sent\": {count}, \"rtts_us\": [{}]}}", shown.join(", "));
    Ok(())
}

struct Probe {
    version: &'static Version,
    socket: OwnedFd,
    identifier: u16,
    /// When each request was sent that has not been answered, in nanoseconds since 1970, by its sequence number.
    sent_ns: HashMap<u16, i128>,
    rtts_us: Vec<f64>,
}

impl Probe {
    fn new(address: IpAddr) -> io::Result<Probe> {
        let version = if address.is_ipv4() { &ICMP } else { &ICMPV6 };
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let descriptor = unsafe { libc::socket(version.family, kind, version.protocol) };
        done(descriptor)?;
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let (on, buffer): (libc::c_int, libc::c_int) = (1, BUFFER);
        unsafe {
            done(libc::setsockopt(
                descriptor,
                libc::SOL_SOCKET,
                libc::SO_TIMESTAMPNS,
                (&raw const on).cast(),
                4,
            ))?;
            // A kernel may refuse it; a train of 90 full frames fits the usual buffer.
            libc::setsockopt(
                descriptor,
                libc::SOL_SOCKET,
                libc::SO_RCVBUFFORCE,
                (&raw const buffer).cast(),
                4,
            );
        }
        connect(descriptor, address)?;
        Ok(Probe {
            version,
            socket,
            identifier: std::process::id() as u16,
            sent_ns: HashMap::new(),
            rtts_us: Vec::new(),
        })
    }

    /// Send a request at the time `now`, which counts from 1970.
    fn send(&mut self, sequence: u16, size: usize, now: Duration) -> io::Result<()> {
        let request = echo_request(self.version, self.identifier, sequence, size);
        self.sent_ns.insert(sequence, now.as_nanos() as i128);
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                request.as_ptr().cast(),
                request.len(),
                0,
            )
        };
        done(sent.signum() as libc::c_int)
    }

    /// Receive replies until that moment.
    fn receive_until(&mut self, moment: Instant) -> io::Result<()> {
        loop {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let mut watched = libc::pollfd {
                fd: self.socket.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let patience = libc::timespec {
                tv_sec: left.as_secs() as libc::time_t,
                tv_nsec: left.subsec_nanos() as libc::c_long,
            };
            let found = unsafe { libc::ppoll(&mut watched, 1, &patience, std::ptr::null()) };
            done(found)?;
            if found == 0 {
                return Ok(());
            }
            self.take()?;
        }
    }

    fn take(&mut self) -> io::Result<()> {
        let mut packet = [0u8; 65536];
        let mut control = [0u64; 16];
        let mut part = libc::iovec {
            iov_base: packet.as_mut_ptr().cast(),
            iov_len: packet.len(),
        };
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &mut message, 0) };
        done(length.signum() as libc::c_int)?;
        let (Some(sequence), Some(received_ns)) = (
            self.answered(&packet[..length as usize]),
            received_ns(&message),
        ) else {
            return Ok(());
        };
        if let Some(sent_ns) = self.sent_ns.remove(&sequence) {
            self.rtts_us.push((received_ns - sent_ns) as f64 / 1000.0);
        }
        Ok(())
    }

    /// The sequence number of a reply to one of these requests. None if the packet is no such reply.
    fn answered(&self, packet: &[u8]) -> Option<u16> {
        let before = if self.version.has_header {
            usize::from(packet.first()? & 0x0f) * 4
        } else {
            0
        };
        let header = packet.get(before..)?.first_chunk::<HEADER>()?;
        let identifier = u16::from_be_bytes([header[4], header[5]]);
        (header[0] == self.version.reply && identifier == self.identifier)
            .then(|| u16::from_be_bytes([header[6], header[7]]))
    }
}

/// Send to this address, and receive from it alone.
fn connect(descriptor: libc::c_int, address: IpAddr) -> io::Result<()> {
    match address {
        IpAddr::V4(address) => connect_to(
            descriptor,
            &libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_addr: libc::in_addr {
                    s_addr: u32::from(address).to_be(),
                },
                ..unsafe { zeroed() }
            },
        ),
        IpAddr::V6(address) => connect_to(
            descriptor,
            &libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_addr: libc::in6_addr {
                    s6_addr: address.octets(),
                },
                ..unsafe { zeroed() }
            },
        ),
    }
}

fn connect_to<Address>(descriptor: libc::c_int, to: &Address) -> io::Result<()> {
    let length = size_of::<Address>() as libc::socklen_t;
    done(unsafe { libc::connect(descriptor, (&raw const *to).cast(), length) })
}

fn since_1970() -> io::Result<Duration> {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(io::Error::other)
}

/// When the kernel received the packet, in nanoseconds since 1970.
fn received_ns(message: &libc::msghdr) -> Option<i128> {
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_TIMESTAMPNS {
            return None;
        }
        let moment = libc::CMSG_DATA(header)
            .cast::<libc::timespec>()
            .read_unaligned();
        Some(i128::from(moment.tv_sec) * 1_000_000_000 + i128::from(moment.tv_nsec))
    }
}

/// An echo request. The kernel replaces the sum of ICMPv6, which covers addresses, too (RFC 3542, section 3.1).
fn echo_request(version: &Version, identifier: u16, sequence: u16, size: usize) -> Vec<u8> {
    let mut request = vec![version.request, 0, 0, 0];
    request.extend(identifier.to_be_bytes());
    request.extend(sequence.to_be_bytes());
    request.resize(HEADER + size, 0);
    let sum = checksum(&request).to_be_bytes();
    request[2..4].copy_from_slice(&sum);
    request
}

/// The Internet checksum (RFC 1071).
fn checksum(data: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut total: u32 = data.chunks(2).map(word).sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_over_a_request_with_its_own_sum_is_none() {
        for size in [0, 1, 56, 1400] {
            let request = echo_request(&ICMP, 0x1234, 7, size);
            assert_eq!((request.len(), checksum(&request)), (HEADER + size, 0));
        }
    }
}
