//! The device's side of vhost-user: a kernel's network card or console, with its queues in the kernel's own memory.
//!
//! Of the protocol what a User-Mode Linux kernel on a shared clock says (drivers/virtio_uml.c): its notifications travel
//! in the messages, or are noted beside its calendar, so that each is a moment of the clock.
//!
//! Messages and queues may hold anything, and change while they are read. So nothing takes more memory than its bound, and
//! no loop more rounds than a queue has entries.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use virtio_queue::{Queue, QueueT};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemory, GuestMemoryMmap, MmapRegion};

use crate::calendar::lie;
use crate::socket::{self, Received};
use crate::taken_away;
use crate::wire::SHORTEST_FRAME;

pub const QUEUE_SIZE: u16 = 256;
/// The largest MTU that Linux has, an Ethernet header and two VLAN tags (IEEE 802.1ad). No card here is offered to leave
/// segments to (VIRTIO_NET_F_HOST_TSO4 and its like), so no frame is longer.
pub const LONGEST_FRAME: usize = 65_535 + 14 + 8;
/// hvc(4) sends a page at the most.
const LONGEST_TEXT: usize = 1 << 16;
/// A frame is put into no more pieces of a kernel's memory: 45 buffers hold the longest, and one has two pieces.
const MOST_PIECES: usize = 1024;
const INPUT: usize = 0;
const OUTPUT: usize = 1;
const NET_HEADER: usize = 12;
// In the ring of used buffers.
const USED_INDEX: u64 = 2;
const USED_HEADER: u64 = 4;
const USED_ENTRY: u64 = 8;

const F_NET_MAC: u64 = 1 << 5;
const F_NET_MERGE: u64 = 1 << 15;
const F_PROTOCOL: u64 = 1 << 30;
const F_VERSION_1: u64 = 1 << 32;

const PROTOCOL_REPLY: u64 = 1 << 3;
const PROTOCOL_BACKEND_REQUESTS: u64 = 1 << 5;
const PROTOCOL_CONFIG: u64 = 1 << 9;
const PROTOCOL_SEND_FD: u64 = 1 << 10;
const PROTOCOL_INBAND: u64 = 1 << 14;

const FLAG_VERSION: u32 = 1;
const FLAG_REPLY: u32 = 1 << 2;
const FLAG_NEED_REPLY: u32 = 1 << 3;

const GET_FEATURES: u32 = 1;
const SET_MEM_TABLE: u32 = 5;
const SET_VRING_NUM: u32 = 8;
const SET_VRING_ADDR: u32 = 9;
const SET_VRING_BASE: u32 = 10;
const GET_VRING_BASE: u32 = 11;
const GET_PROTOCOL_FEATURES: u32 = 15;
const SET_PROTOCOL_FEATURES: u32 = 16;
const GET_QUEUE_NUM: u32 = 17;
const SET_VRING_ENABLE: u32 = 18;
const SET_BACKEND_REQUESTS: u32 = 21;
const GET_CONFIG: u32 = 24;
const VRING_KICK: u32 = 35;

const HEADER: usize = 12;
const LONGEST: usize = 1 << 12;

pub enum Kind {
    Network { mac: [u8; 6] },
    Console,
}

/// What a message of the kernel's was about.
pub enum Event {
    Nothing,
    /// Something for the kernel's other side lies in the output queue. Answer with `done`.
    Output,
    Settled,
    Closed,
}

/// What came of bytes that were put into the kernel's memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    #[default]
    NoRoom,
    /// The kernel looks by itself.
    Silent,
    /// It has to be called.
    Call,
}

/// The kernel's memory, and where each part of it lies in this process.
struct Memory {
    mapped: GuestMemoryMmap,
    regions: Vec<(usize, usize)>,
}

pub struct Device {
    kind: Kind,
    socket: OwnedFd,
    /// By which the kernel could be called. It is told of input with its turn instead, and takes the device for broken when
    /// this is closed.
    _calls: Option<OwnedFd>,
    memory: Option<Memory>,
    queues: [Queue; 2],
    owed: Option<u32>,
    /// Whether the kernel sends nothing before its last message has been answered, so that one read is one message.
    waits_for_answers: bool,
}

impl Device {
    pub fn new(kind: Kind, socket: OwnedFd) -> Device {
        let queue = || Queue::new(QUEUE_SIZE).expect("a power of two");
        Device {
            kind,
            socket,
            _calls: None,
            memory: None,
            queues: [queue(), queue()],
            owed: None,
            waits_for_answers: false,
        }
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.socket
    }

    /// The next message of the kernel's, which waits for its answer: `Output` is answered by `done`.
    pub fn receive(&mut self) -> io::Result<Event> {
        let mut message = [0; LONGEST];
        let piece = if self.waits_for_answers {
            LONGEST
        } else {
            HEADER
        };
        let fd = self.socket.as_raw_fd();
        let (count, descriptors) = match socket::read_with_descriptors(fd, &mut message[..piece])? {
            Received::Nothing => return Ok(Event::Nothing),
            Received::Closed => return Ok(Event::Closed),
            Received::Some(came) => came,
        };
        if count < HEADER {
            return Err(socket::part_of_a_message());
        }
        let word = |at: usize| u32::from_ne_bytes(message[at..at + 4].try_into().unwrap());
        let (request, flags, size) = (word(0), word(4), word(8) as usize);
        if size > LONGEST - HEADER || count > HEADER + size {
            return Err(lie("it sent a message longer than any of the protocol's"));
        }
        if count < HEADER + size
            && socket::read_message(fd, &mut message[count..HEADER + size])? != Received::Some(())
        {
            return Err(socket::part_of_a_message());
        }
        let payload = &message[HEADER..HEADER + size];
        if request == VRING_KICK {
            self.owed = (flags & FLAG_NEED_REPLY != 0).then_some(request);
            if number(payload, 0)? == OUTPUT as u32 {
                return Ok(Event::Output);
            }
            self.done()?;
            return Ok(Event::Settled);
        }
        match self.answer(request, payload, descriptors)? {
            Some(answer) => self.reply(request, &answer)?,
            None if flags & FLAG_NEED_REPLY != 0 => self.reply(request, &0u64.to_ne_bytes())?,
            None => {}
        }
        Ok(Event::Settled)
    }

    /// The kernel may go on after an `Output`.
    pub fn done(&mut self) -> io::Result<()> {
        match self.owed.take() {
            Some(request) => self.reply(request, &0u64.to_ne_bytes()),
            None => Ok(()),
        }
    }

    /// What is in the output queue, up to and without the entry `available` if it is given, and no more than the queue
    /// has entries; each piece without its virtio header.
    pub fn take_output(&mut self, available: Option<u16>) -> io::Result<Vec<Vec<u8>>> {
        self.touching(|device, memory| device.take_from(memory, available))
    }

    /// Put a frame, or as much of the console's input as one buffer holds, into the input queue.
    ///
    /// Returns how many of `bytes` went in: all or none of a frame.
    pub fn put_input(&mut self, bytes: &[u8]) -> io::Result<(Delivery, usize)> {
        self.touching(|device, memory| match device.kind {
            Kind::Network { .. } => device.put_frame(memory, bytes),
            Kind::Console => device.put_text(memory, bytes),
        })
    }

    /// Put a frame into the input queue so that the kernel does not see it before it is told the index that is returned.
    /// None if there is no room.
    pub fn put_ahead(&mut self, frame: &[u8]) -> io::Result<Option<u16>> {
        self.touching(|device, memory| device.put_unseen(memory, frame))
    }

    /// Let the kernel see all that is in the input queue.
    pub fn publish(&mut self) -> io::Result<()> {
        self.touching(|device, memory| {
            let queue = &device.queues[INPUT];
            let index = at(queue.used_ring(), USED_INDEX)?;
            memory
                .store(queue.next_used().to_le(), index, Ordering::Release)
                .map_err(other)
        })
    }

    /// Do something with the kernel's memory, which the kernel may take away meanwhile. Nothing where it has none yet.
    fn touching<T: Default>(
        &mut self,
        act: impl FnOnce(&mut Device, &GuestMemoryMmap) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(memory) = self.memory.take() else {
            return Ok(T::default());
        };
        taken_away::touch(&memory.regions);
        let done = act(self, &memory.mapped);
        self.memory = Some(memory);
        if taken_away::was_any() {
            return Err(lie(
                "it has taken its memory away, or there is no room for it on this machine",
            ));
        }
        done
    }

    fn take_from(
        &mut self,
        memory: &GuestMemoryMmap,
        available: Option<u16>,
    ) -> io::Result<Vec<Vec<u8>>> {
        let (header, shortest, longest) = match self.kind {
            Kind::Network { .. } => (NET_HEADER, SHORTEST_FRAME as usize, LONGEST_FRAME),
            Kind::Console => (0, 0, LONGEST_TEXT),
        };
        let queue = &mut self.queues[OUTPUT];
        let mut pieces = Vec::new();
        while available != Some(queue.next_avail()) && pieces.len() < usize::from(QUEUE_SIZE) {
            let Some(chain) = queue.pop_descriptor_chain(memory) else {
                break;
            };
            let head = chain.head_index();
            let mut piece = Vec::new();
            for part in chain.readable() {
                let start = piece.len();
                if start + part.len() as usize > header + longest {
                    return Err(lie(format!(
                        "it sent more than {longest} bytes at once by a port or its console"
                    )));
                }
                piece.resize(start + part.len() as usize, 0);
                memory
                    .read_slice(&mut piece[start..], part.addr())
                    .map_err(other)?;
            }
            if piece.len() < header + shortest {
                return Err(lie(format!(
                    "it sent a frame of {} bytes",
                    piece.len().saturating_sub(header)
                )));
            }
            queue.add_used(memory, head, 0).map_err(other)?;
            piece.drain(..header);
            pieces.push(piece);
        }
        Ok(pieces)
    }

    fn put_frame(
        &mut self,
        memory: &GuestMemoryMmap,
        frame: &[u8],
    ) -> io::Result<(Delivery, usize)> {
        let Some(buffers) = self.place(memory, frame)? else {
            return Ok((Delivery::NoRoom, 0));
        };
        let queue = &mut self.queues[INPUT];
        for (head, length) in buffers {
            queue.add_used(memory, head, length).map_err(other)?;
        }
        Ok((Self::notice(queue, memory)?, frame.len()))
    }

    fn put_unseen(&mut self, memory: &GuestMemoryMmap, frame: &[u8]) -> io::Result<Option<u16>> {
        let Some(buffers) = self.place(memory, frame)? else {
            return Ok(None);
        };
        let queue = &mut self.queues[INPUT];
        for (head, length) in buffers {
            let place = u64::from(queue.next_used() % queue.size());
            let entry = at(queue.used_ring(), USED_HEADER + USED_ENTRY * place)?;
            memory
                .write_obj([u32::from(head), length].map(u32::to_le), entry)
                .map_err(other)?;
            queue.set_next_used(queue.next_used().wrapping_add(1));
        }
        Ok(Some(queue.next_used()))
    }

    /// Write a frame into free buffers of the input queue: which, and how many bytes each holds. None if they do not do.
    fn place(
        &mut self,
        memory: &GuestMemoryMmap,
        frame: &[u8],
    ) -> io::Result<Option<Vec<(u16, u32)>>> {
        let queue = &mut self.queues[INPUT];
        if !queue.ready() {
            return Ok(None);
        }
        let start = queue.next_avail();
        let mut left: Vec<u8> = vec![0; NET_HEADER];
        left.extend_from_slice(frame);
        let (mut filled, mut used) = (0, Vec::new());
        while filled < left.len() {
            let Some(chain) = queue.pop_descriptor_chain(memory) else {
                queue.set_next_avail(start);
                return Ok(None);
            };
            let (head, before) = (chain.head_index(), filled);
            for part in chain.writable() {
                let count = (part.len() as usize).min(left.len() - filled);
                used.push((head, part.addr(), filled, count));
                filled += count;
                if used.len() > MOST_PIECES {
                    return Err(lie("it gave a frame nothing but tiny buffers"));
                }
            }
            if filled == before {
                return Err(lie("it gave an input buffer without room"));
            }
        }
        let mut heads: Vec<(u16, u32)> = Vec::new();
        for &(head, _, _, count) in &used {
            match heads.last_mut() {
                Some((last, length)) if *last == head => *length += count as u32,
                _ => heads.push((head, count as u32)),
            }
        }
        left[10..12].copy_from_slice(&(heads.len() as u16).to_le_bytes());
        for (_, address, from, count) in used {
            memory
                .write_slice(&left[from..from + count], address)
                .map_err(other)?;
        }
        Ok(Some(heads))
    }

    fn put_text(&mut self, memory: &GuestMemoryMmap, text: &[u8]) -> io::Result<(Delivery, usize)> {
        let queue = &mut self.queues[INPUT];
        if !queue.ready() {
            return Ok((Delivery::NoRoom, 0));
        }
        let mut taken = 0;
        for _ in 0..QUEUE_SIZE {
            if taken == text.len() {
                break;
            }
            let Some(chain) = queue.pop_descriptor_chain(memory) else {
                break;
            };
            let (head, before) = (chain.head_index(), taken);
            for part in chain.writable() {
                let count = (part.len() as usize).min(text.len() - taken);
                memory
                    .write_slice(&text[taken..taken + count], part.addr())
                    .map_err(other)?;
                taken += count;
            }
            queue
                .add_used(memory, head, (taken - before) as u32)
                .map_err(other)?;
        }
        if taken == 0 {
            return Ok((Delivery::NoRoom, 0));
        }
        Ok((Self::notice(queue, memory)?, taken))
    }

    fn notice(queue: &mut Queue, memory: &GuestMemoryMmap) -> io::Result<Delivery> {
        Ok(if queue.needs_notification(memory).map_err(other)? {
            Delivery::Call
        } else {
            Delivery::Silent
        })
    }

    fn answer(
        &mut self,
        request: u32,
        payload: &[u8],
        mut descriptors: Vec<OwnedFd>,
    ) -> io::Result<Option<Vec<u8>>> {
        let kind = match self.kind {
            Kind::Network { .. } => F_NET_MAC | F_NET_MERGE,
            Kind::Console => 0,
        };
        let protocol = PROTOCOL_REPLY
            | PROTOCOL_BACKEND_REQUESTS
            | PROTOCOL_CONFIG
            | PROTOCOL_SEND_FD
            | PROTOCOL_INBAND;
        Ok(match request {
            GET_FEATURES => Some((F_VERSION_1 | F_PROTOCOL | kind).to_ne_bytes().to_vec()),
            GET_PROTOCOL_FEATURES => Some(protocol.to_ne_bytes().to_vec()),
            GET_QUEUE_NUM => Some(2u64.to_ne_bytes().to_vec()),
            SET_BACKEND_REQUESTS => {
                self._calls = descriptors.pop();
                None
            }
            SET_PROTOCOL_FEATURES => {
                self.waits_for_answers = long(payload, 0)? & PROTOCOL_REPLY != 0;
                None
            }
            SET_MEM_TABLE => {
                self.memory = Some(map(payload, descriptors)?);
                None
            }
            GET_CONFIG => Some(self.config(payload)?),
            GET_VRING_BASE => {
                let index = number(payload, 0)?;
                let next = u32::from(self.queue(index)?.next_avail());
                Some([index.to_ne_bytes(), next.to_ne_bytes()].concat())
            }
            SET_VRING_NUM => {
                let size = number(payload, 1)? as u16;
                self.queue(number(payload, 0)?)?.set_size(size);
                None
            }
            SET_VRING_BASE => {
                let base = number(payload, 1)? as u16;
                let queue = self.queue(number(payload, 0)?)?;
                queue.set_next_avail(base);
                queue.set_next_used(base);
                None
            }
            SET_VRING_ADDR => {
                let addresses = [long(payload, 8)?, long(payload, 16)?, long(payload, 24)?];
                let halves = |address: u64| (Some(address as u32), Some((address >> 32) as u32));
                let queue = self.queue(number(payload, 0)?)?;
                let (low, high) = halves(addresses[0]);
                queue.set_desc_table_address(low, high);
                let (low, high) = halves(addresses[1]);
                queue.set_used_ring_address(low, high);
                let (low, high) = halves(addresses[2]);
                queue.set_avail_ring_address(low, high);
                None
            }
            SET_VRING_ENABLE => {
                let enabled = number(payload, 1)? != 0;
                self.queue(number(payload, 0)?)?.set_ready(enabled);
                None
            }
            _ => None,
        })
    }

    /// A part of the device's configuration space, in the message that asked for it.
    fn config(&self, payload: &[u8]) -> io::Result<Vec<u8>> {
        let (offset, size) = (number(payload, 0)? as usize, number(payload, 1)? as usize);
        let mut space = vec![0; 256];
        if let Kind::Network { mac } = self.kind {
            space[..6].copy_from_slice(&mac);
        }
        let mut answer = payload.to_vec();
        for (index, byte) in answer.iter_mut().skip(12).take(size).enumerate() {
            *byte = *space.get(offset + index).unwrap_or(&0);
        }
        Ok(answer)
    }

    fn queue(&mut self, index: u32) -> io::Result<&mut Queue> {
        self.queues
            .get_mut(index as usize)
            .ok_or_else(|| lie("it spoke of a queue that its device has not"))
    }

    fn reply(&self, request: u32, payload: &[u8]) -> io::Result<()> {
        let mut message = Vec::with_capacity(HEADER + payload.len());
        message.extend_from_slice(&request.to_ne_bytes());
        message.extend_from_slice(&(FLAG_VERSION | FLAG_REPLY).to_ne_bytes());
        message.extend_from_slice(&(payload.len() as u32).to_ne_bytes());
        message.extend_from_slice(payload);
        socket::write_message(self.socket.as_raw_fd(), &message)
    }
}

/// The kernel's memory: for each region its address, size, address in the kernel's process, and offset in its file.
///
/// The file has to lie in memory, as all that a kernel makes for itself do: what a disk or a program serves could be read
/// as slowly as it likes.
fn map(payload: &[u8], descriptors: Vec<OwnedFd>) -> io::Result<Memory> {
    let count = number(payload, 0)? as usize;
    if count != descriptors.len() || count > taken_away::MOST_REGIONS {
        return Err(lie(format!(
            "it told of {count} regions of memory, and sent {}",
            descriptors.len()
        )));
    }
    let mut ranges = Vec::new();
    for (index, descriptor) in descriptors.into_iter().enumerate() {
        let at = 8 + index * 32;
        let (address, size, offset) = (
            long(payload, at)?,
            long(payload, at + 8)?,
            long(payload, at + 24)?,
        );
        if !lies_in_memory(&descriptor)? {
            return Err(lie("its memory is no file in this machine's memory"));
        }
        let file = FileOffset::new(File::from(descriptor), offset);
        ranges.push((GuestAddress(address), size as usize, Some(file)));
    }
    let mapped: GuestMemoryMmap = GuestMemoryMmap::from_ranges_with_files(ranges).map_err(other)?;
    let place = |region: &MmapRegion| (region.as_ptr() as usize, region.size());
    let regions = mapped.iter().map(|region| place(region)).collect();
    Ok(Memory { mapped, regions })
}

fn lies_in_memory(file: &OwnedFd) -> io::Result<bool> {
    // SAFETY: statfs is plain numbers, which fstatfs fills.
    unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(file.as_raw_fd(), &mut found) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(found.f_type == libc::TMPFS_MAGIC)
    }
}

fn at(ring: u64, offset: u64) -> io::Result<GuestAddress> {
    ring.checked_add(offset)
        .map(GuestAddress)
        .ok_or_else(|| lie("its queue lies beyond all memory"))
}

/// The 32-bit number at the given place of a message.
fn number(payload: &[u8], index: usize) -> io::Result<u32> {
    let part = payload
        .get(index * 4..index * 4 + 4)
        .ok_or_else(|| lie("it sent a message that is too short"))?;
    Ok(u32::from_ne_bytes(part.try_into().unwrap()))
}

/// The 64-bit number at the given byte of a message.
fn long(payload: &[u8], at: usize) -> io::Result<u64> {
    let part = payload
        .get(at..at + 8)
        .ok_or_else(|| lie("it sent a message that is too short"))?;
    Ok(u64::from_ne_bytes(part.try_into().unwrap()))
}

fn other(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}
