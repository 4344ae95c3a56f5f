//! The messages by which a kernel asks for its time: `struct um_timetravel_msg` of linux/um_timetravel.h.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

use nix::fcntl::{fcntl, FcntlArg, SealFlag};
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
use nix::sys::mman::{mmap, munmap, MapFlags, ProtFlags};

use crate::socket::{self, Received};

pub const SIZE: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Ack,
    Start,
    Request,
    Wait,
    Get,
    Update,
    Run,
    FreeUntil,
    GetTimeOfDay,
    Broadcast,
}

const OPS: [Op; 10] = [
    Op::Ack,
    Op::Start,
    Op::Request,
    Op::Wait,
    Op::Get,
    Op::Update,
    Op::Run,
    Op::FreeUntil,
    Op::GetTimeOfDay,
    Op::Broadcast,
];

/// `time` is in nanoseconds since the kernel's own start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub op: Op,
    pub seq: u32,
    pub time: u64,
}

impl Message {
    pub fn encode(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[0..4].copy_from_slice(&(self.op as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.seq.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; SIZE]) -> Option<Message> {
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        Some(Message {
            op: *OPS.get(word(0) as usize)?,
            seq: word(4),
            time: u64::from_ne_bytes(bytes[8..16].try_into().unwrap()),
        })
    }
}

/// A kernel's connection to the calendar, and the page that it shares with it alone.
///
/// By that page the two need no message to ask for a time, to tell one, or to say how far the kernel may go by itself.
///
/// All that a kernel writes there is read once and then judged: it may be anything.
///
/// A kernel that was paused does not know of that time: its page is behind the lab's clock by so much, and all that passes
/// here is turned from one into the other.
pub struct Calendar {
    socket: OwnedFd,
    page: Page,
    behind: u64,
}

impl Calendar {
    pub fn new(socket: OwnedFd) -> io::Result<Calendar> {
        Ok(Calendar {
            socket,
            page: Page::new()?,
            behind: 0,
        })
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.socket
    }

    /// The next message, if there is one.
    pub fn receive(&self) -> io::Result<Received<Message>> {
        let mut bytes = [0; SIZE];
        Ok(
            match socket::read_message(self.socket.as_raw_fd(), &mut bytes)? {
                Received::Nothing => Received::Nothing,
                Received::Closed => Received::Closed,
                Received::Some(()) => Received::Some(
                    Message::decode(&bytes).ok_or_else(|| lie("it sent what is no message"))?,
                ),
            },
        )
    }

    pub fn ack(&self, message: &Message, time: u64) -> io::Result<()> {
        self.send(Message {
            op: Op::Ack,
            seq: message.seq,
            time,
        })
    }

    /// Answer a kernel's `Start`, and so let it run for the first time, at `now` of the lab's clock.
    pub fn welcome(&mut self, message: &Message, now: u64) -> io::Result<()> {
        self.page.set_time(now);
        self.page.set_free_until(now);
        let answer = Message {
            op: Op::Ack,
            seq: message.seq,
            time: u64::from(ID),
        };
        let log = std::fs::File::options()
            .write(true)
            .open("/dev/null")
            .or_else(|_| self.page.file.try_clone())?;
        let descriptors = [self.page.file.as_raw_fd(), log.as_raw_fd()];
        socket::write_with_descriptors(self.socket.as_raw_fd(), &answer.encode(), &descriptors)
    }

    /// What the kernel last asked for, in the lab's time, and the time to which it has come.
    pub fn request(&self) -> Option<u64> {
        self.page
            .request()
            .map(|request| request.saturating_add(self.behind))
    }

    pub fn time(&self) -> u64 {
        self.page.time().saturating_add(self.behind)
    }

    /// The same time as the kernel has it.
    pub fn own_time(&self) -> u64 {
        self.page.time()
    }

    /// So much has passed that the kernel is never to know of.
    pub fn fall_behind(&mut self, passed: u64) {
        self.behind += passed;
    }

    /// What the kernel has sent since it was last asked, without saying so.
    pub fn take_sent(&self) -> io::Result<Vec<Note>> {
        let count = self.page.get::<u32>(SENT_COUNT_AT) as usize;
        if count > NOTES {
            return Err(lie(format!(
                "it noted {count} frames, and there is room for {NOTES}"
            )));
        }
        self.page.set(SENT_COUNT_AT, 0u32);
        let notes = (0..count).map(|index| self.page.note(SENT_AT, index));
        Ok(notes
            .map(|note| Note {
                time: note.time.saturating_add(self.behind),
                ..note
            })
            .collect())
    }

    /// How much of what was due in its turn the kernel has taken.
    pub fn taken(&self) -> usize {
        self.page.get::<u32>(DUE_TAKEN_AT) as usize
    }

    /// Let the kernel run at `now` of the lab's clock, and by itself on until just before `free_until`. `local` is what
    /// `now` is for the kernel, which counts from its own start; `calls` has a bit for each device with input for it, and
    /// `due` is what comes before its turn is over.
    pub fn run(
        &mut self,
        now: u64,
        local: u64,
        free_until: u64,
        calls: u64,
        due: &[Note],
    ) -> io::Result<()> {
        self.page.set(CALLS_AT, calls);
        self.page.set(DUE_COUNT_AT, due.len() as u32);
        self.page.set(DUE_TAKEN_AT, 0u32);
        for (index, note) in due.iter().enumerate() {
            self.page.set_note(
                DUE_AT,
                index,
                &Note {
                    time: note.time - self.behind,
                    ..*note
                },
            );
        }
        self.page.set_time(now - self.behind);
        self.page.set_free_until(free_until - self.behind);
        self.send(Message {
            op: Op::Run,
            seq: 0,
            time: local - self.behind,
        })
    }

    fn send(&self, message: Message) -> io::Result<()> {
        socket::write_message(self.socket.as_raw_fd(), &message.encode())
    }
}

/// What no kernel of ours does.
pub fn lie(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// At `time` a queue of `device` held more, up to and without the entry `index`: of output that is available, or of input
/// that has been put there.
pub struct Note {
    pub time: u64,
    pub device: usize,
    pub index: u16,
}

/// For how many notes of either kind there is room.
pub const NOTES: usize = 256;

/// The kernel's number on its page, which no other kernel is on.
const ID: u16 = 0;
const VERSION: u32 = 2;
const CAN_SHARE: u32 = 1;
const WANTS_TO_RUN: u32 = 1;
const CLIENT: usize = 128;

/// `struct um_timetravel_schedshm` with room for one kernel: a page of the calendar's, then the kernel's own.
struct Page {
    file: File,
    memory: NonNull<c_void>,
}

// Offsets in it.
const LENGTH_AT: usize = 4;
const FREE_UNTIL_AT: usize = 8;
const TIME_AT: usize = 16;
const RUNNING_AT: usize = 24;
const CLIENTS_AT: usize = 26;
const OWN_AT: usize = 4096;
const CAPABILITIES_AT: usize = OWN_AT;
const FLAGS_AT: usize = OWN_AT + 4;
const REQUEST_AT: usize = OWN_AT + 8;
// Behind it, what our own kernel knows of (provision/kernel/patches/0008-frames-noted-on-the-calendar.patch).
const NOTES_AT: usize = OWN_AT + CLIENT;
const CALLS_AT: usize = NOTES_AT;
const SENT_COUNT_AT: usize = NOTES_AT + 8;
const DUE_COUNT_AT: usize = NOTES_AT + 12;
const DUE_TAKEN_AT: usize = NOTES_AT + 16;
const SENT_AT: usize = NOTES_AT + 24;
const NOTE: usize = 16;
const DUE_AT: usize = SENT_AT + NOTE * NOTES;
const LENGTH: usize = DUE_AT + NOTE * NOTES;

impl Page {
    fn new() -> io::Result<Page> {
        let flags = MemFdCreateFlag::MFD_CLOEXEC | MemFdCreateFlag::MFD_ALLOW_SEALING;
        let file = File::from(memfd_create(c"calendar", flags)?);
        file.set_len(LENGTH as u64)?;
        // The kernel gets it, and must not make it shorter under the clock.
        let sealed = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(file.as_raw_fd(), FcntlArg::F_ADD_SEALS(sealed))?;
        let length = NonZeroUsize::new(LENGTH).expect("not zero");
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping of a file of that length, which is unmapped with the page.
        let memory = unsafe { mmap(None, length, both, MapFlags::MAP_SHARED, &file, 0)? };
        let page = Page { file, memory };
        page.set(0, VERSION);
        page.set(LENGTH_AT, LENGTH as u32);
        page.set(RUNNING_AT, ID);
        page.set(CLIENTS_AT, 1u16);
        Ok(page)
    }

    fn time(&self) -> u64 {
        self.get(TIME_AT)
    }

    fn set_time(&self, now: u64) {
        self.set(TIME_AT, now);
    }

    fn set_free_until(&self, time: u64) {
        self.set(FREE_UNTIL_AT, time);
    }

    fn request(&self) -> Option<u64> {
        let able: u32 = self.get(CAPABILITIES_AT);
        let flags: u32 = self.get(FLAGS_AT);
        (able & CAN_SHARE != 0 && flags & WANTS_TO_RUN != 0).then(|| self.get(REQUEST_AT))
    }

    fn note(&self, table: usize, number: usize) -> Note {
        let at = table + number * NOTE;
        let (device, index): (u32, u32) = (self.get(at + 8), self.get(at + 12));
        Note {
            time: self.get(at),
            device: device as usize,
            index: index as u16,
        }
    }

    fn set_note(&self, table: usize, number: usize, note: &Note) {
        let at = table + number * NOTE;
        self.set(at, note.time);
        self.set(at + 8, note.device as u32);
        self.set(at + 12, u32::from(note.index));
    }

    fn get<T: Copy>(&self, at: usize) -> T {
        // SAFETY: within the mapping, and aligned; whatever a kernel writes there meanwhile, all bits are a number.
        unsafe { self.memory.cast::<u8>().add(at).cast::<T>().read_volatile() }
    }

    fn set<T>(&self, at: usize, value: T) {
        // SAFETY: as for `get`.
        unsafe {
            self.memory
                .cast::<u8>()
                .add(at)
                .cast::<T>()
                .write_volatile(value)
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nothing else knows of it.
        let _ = unsafe { munmap(self.memory, LENGTH) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for op in OPS {
            let message = Message {
                op,
                seq: 7,
                time: u64::MAX - 1,
            };
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn a_page_says_what_was_asked_for() {
        let page = Page::new().unwrap();
        assert_eq!(page.request(), None);
        page.set(CAPABILITIES_AT, CAN_SHARE);
        page.set(FLAGS_AT, WANTS_TO_RUN);
        page.set(REQUEST_AT, 5_000_000_017u64);
        assert_eq!(page.request(), Some(5_000_000_017));
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let page = Page::new().unwrap();
        for (table, number) in [
            (SENT_AT, 0),
            (SENT_AT, NOTES - 1),
            (DUE_AT, 0),
            (DUE_AT, NOTES - 1),
        ] {
            page.set_note(
                table,
                number,
                &Note {
                    time: u64::MAX - number as u64,
                    device: 3,
                    index: u16::MAX,
                },
            );
        }
        let note = page.note(SENT_AT, NOTES - 1);
        assert_eq!(
            (note.time, note.device, note.index),
            (u64::MAX - 255, 3, u16::MAX)
        );
        assert_eq!(page.note(DUE_AT, 0).time, u64::MAX);
    }

    #[test]
    fn a_page_cannot_be_made_shorter_by_who_shares_it() {
        let page = Page::new().unwrap();
        let shared = page.file.try_clone().unwrap();
        assert!(shared.set_len(0).is_err() && shared.set_len(1 << 20).is_err());
        assert_eq!(page.time(), 0);
    }

    #[test]
    fn more_notes_than_there_is_room_for_are_a_lie() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let calendar = Calendar::new(ours.into()).unwrap();
        calendar.page.set(SENT_COUNT_AT, NOTES as u32);
        assert_eq!(calendar.take_sent().unwrap().len(), NOTES);
        calendar.page.set(SENT_COUNT_AT, NOTES as u32 + 1);
        assert!(calendar.take_sent().is_err());
    }

    #[test]
    fn an_unknown_message_is_none() {
        let mut bytes = Message {
            op: Op::Ack,
            seq: 0,
            time: 0,
        }
        .encode();
        bytes[0] = 10;
        assert_eq!(Message::decode(&bytes), None);
    }
}
