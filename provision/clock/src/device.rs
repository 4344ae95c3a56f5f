//! A kernel's network card or console: the device's side of vhost-user, by which the kernel sets the device up.
//!
//! Of the protocol, these are the messages that a User-Mode Linux kernel on a shared clock sends (drivers/virtio_uml.c). Its
//! notifications travel in messages, or are noted on its calendar's page, so that each belongs to a moment of the lab's clock.
//! The device's queues are in rings.rs.
//!
//! A message may hold anything. So no message takes more memory than its bound.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use virtio_queue::{Queue, QueueT};

use crate::calendar::lie;
use crate::rings::{Memory, Region, Rings, OUTPUT};
use crate::socket::{self, Received};
use crate::taken_away;
use crate::trunk::TAG_BYTES;

const F_NET_MAC: u64 = 1 << 5;
const F_NET_MERGE: u64 = 1 << 15;
const F_NET_STATUS: u64 = 1 << 16;
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

/// Where a card's settings say whether it has a carrier, after its MAC address: a word of 16 bits, whose lowest is set then.
const CARRIER_AT: usize = 6;

/// Where they say that it is a trunk, and which of its ports have no carrier, a bit for each tag. No standard knows of these;
/// the kernel's patch 33 does.
const TRUNK_AT: usize = 63;
const CUT_AT: usize = 64;

const HEADER: usize = 12;
const LONGEST: usize = 1 << 12;

#[derive(Clone, Copy)]
pub enum Kind {
    /// A card with that MAC address.
    Network {
        mac: [u8; 6],
        is_trunk: bool,
    },
    Console,
}

/// What a kernel's message was about.
pub enum Event {
    /// There was no message.
    Nothing,
    /// There is something in the output queue. The kernel waits for `done`.
    Output,
    /// The message has been dealt with.
    Settled,
    /// The kernel has closed the socket.
    Closed,
}

pub struct Device {
    kind: Kind,
    /// Whether there is light on the cable, or what a card takes for it.
    has_carrier: bool,
    /// A bit for each port of a trunk that has no carrier, by its tag.
    cut: [u8; TAG_BYTES],
    socket: OwnedFd,
    /// A descriptor by which the device could call the kernel. It does not: the kernel is told of input with its turn. But the
    /// kernel takes the device for broken when this is closed.
    _calls: Option<OwnedFd>,
    /// Its queues, in the kernel's memory.
    pub rings: Rings,
    /// The request that `done` answers.
    unanswered: Option<u32>,
    /// Whether the kernel sends no message before its last one has been answered, so that one read is one message.
    waits_for_answers: bool,
}

impl Device {
    pub fn new(kind: Kind, socket: OwnedFd) -> Device {
        Device {
            kind,
            has_carrier: true,
            cut: [0; TAG_BYTES],
            socket,
            _calls: None,
            rings: Rings::new(kind),
            unanswered: None,
            waits_for_answers: false,
        }
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.socket
    }

    /// Another kernel, which has been this one until now, has this device, over that socket and with its memory in that file.
    pub fn serve_another(&mut self, socket: OwnedFd, memory: &OwnedFd) -> io::Result<()> {
        self.socket = socket;
        self.rings.move_to(memory)
    }

    /// Give the card, or the port with that tag, a carrier, or take it away. True if that is another state than before; the
    /// kernel has to be told then.
    pub fn set_carrier(&mut self, tag: Option<u16>, has_carrier: bool) -> bool {
        let Some(tag) = tag else {
            return std::mem::replace(&mut self.has_carrier, has_carrier) != has_carrier;
        };
        let (byte, bit) = (&mut self.cut[usize::from(tag) / 8], 1 << (tag % 8));
        let before = *byte;
        *byte = if has_carrier {
            before & !bit
        } else {
            before | bit
        };
        *byte != before
    }

    /// Read one message of the kernel's, if there is one, and answer it. `Output` is answered by `done`.
    pub fn receive(&mut self) -> io::Result<Event> {
        let mut message = [0; LONGEST];
        let piece = if self.waits_for_answers {
            LONGEST
        } else {
            HEADER
        };
        let fd = self.socket.as_raw_fd();
        let most = taken_away::MOST_REGIONS;
        let came = match socket::read_with_descriptors(fd, &mut message[..piece], most)? {
            Received::Nothing => return Ok(Event::Nothing),
            Received::Closed => return Ok(Event::Closed),
            Received::Some(came) => came,
        };
        let (count, descriptors) = (came.bytes, came.descriptors?);
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
            self.unanswered = (flags & FLAG_NEED_REPLY != 0).then_some(request);
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

    /// Answer an `Output`, so that the kernel goes on.
    pub fn done(&mut self) -> io::Result<()> {
        match self.unanswered.take() {
            Some(request) => self.reply(request, &0u64.to_ne_bytes()),
            None => Ok(()),
        }
    }

    fn answer(
        &mut self,
        request: u32,
        payload: &[u8],
        mut descriptors: Vec<OwnedFd>,
    ) -> io::Result<Option<Vec<u8>>> {
        let kind = match self.kind {
            Kind::Network { .. } => F_NET_MAC | F_NET_MERGE | F_NET_STATUS,
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
                self.rings.memory = Some(map(payload, descriptors)?);
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
        let mut space = vec![0; CUT_AT + TAG_BYTES];
        if let Kind::Network { mac, is_trunk } = self.kind {
            space[..CARRIER_AT].copy_from_slice(&mac);
            space[CARRIER_AT] = u8::from(self.has_carrier);
            space[TRUNK_AT] = u8::from(is_trunk);
            space[CUT_AT..].copy_from_slice(&self.cut);
        }
        let mut answer = payload.to_vec();
        for (index, byte) in answer.iter_mut().skip(12).take(size).enumerate() {
            *byte = *space.get(offset + index).unwrap_or(&0);
        }
        Ok(answer)
    }

    fn queue(&mut self, index: u32) -> io::Result<&mut Queue> {
        self.rings
            .queues
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

/// The kernel's memory, by a message that says for each region its address for the kernel, its size, its address in the kernel's
/// process, and its offset in the descriptor's file.
fn map(payload: &[u8], descriptors: Vec<OwnedFd>) -> io::Result<Memory> {
    let count = number(payload, 0)? as usize;
    if count != descriptors.len() || count > taken_away::MOST_REGIONS {
        return Err(lie(format!(
            "it told of {count} regions of memory, and sent {}",
            descriptors.len()
        )));
    }
    let mut regions = Vec::new();
    for (index, descriptor) in descriptors.into_iter().enumerate() {
        let at = 8 + index * 32;
        let (address, size, offset) = (
            long(payload, at)?,
            long(payload, at + 8)?,
            long(payload, at + 24)?,
        );
        regions.push(Region {
            address,
            size,
            offset,
            file: descriptor,
        });
    }
    Memory::map(regions)
}

/// The message's 32-bit number of that index.
fn number(payload: &[u8], index: usize) -> io::Result<u32> {
    let part = payload
        .get(index * 4..index * 4 + 4)
        .ok_or_else(|| lie("it sent a message that is too short"))?;
    Ok(u32::from_ne_bytes(part.try_into().unwrap()))
}

/// The message's 64-bit number at that byte.
fn long(payload: &[u8], at: usize) -> io::Result<u64> {
    let part = payload
        .get(at..at + 8)
        .ok_or_else(|| lie("it sent a message that is too short"))?;
    Ok(u64::from_ne_bytes(part.try_into().unwrap()))
}
