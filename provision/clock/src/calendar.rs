//! How a kernel and the clock speak of time: by messages, and by a page of memory that they share (page.rs).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::page::{Note, Page, ID, NOTES};
use crate::socket::{self, Received};

/// The length of a message, in bytes.
pub const SIZE: usize = 16;

/// A message's kind: `enum um_timetravel_ops` of linux/um_timetravel.h, the last one by
/// provision/kernel/patches/0028-a-kernel-becomes-two.patch.
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
    Fork,
}

const OPS: [Op; 11] = [
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
    Op::Fork,
];

/// A message: `struct um_timetravel_msg` of linux/um_timetravel.h. `time` is in nanoseconds since the kernel's own start.
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

/// A kernel's connection to the clock, and the page that the two share.
///
/// Over the page they need no message to ask for a time, to tell one, or to say how far the kernel may go by itself. The page
/// may hold anything, since the kernel writes there: each word is read once and then judged.
///
/// A kernel that was paused does not know of that time, so the times on its page are behind the lab's clock by its pauses. All
/// times that go in and out here are the lab's.
pub struct Calendar {
    socket: OwnedFd,
    page: Page,
    /// How long the kernel has been paused, in nanoseconds.
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

    /// The calendar of another kernel, which has been this one until now.
    pub fn twin(&self, socket: OwnedFd) -> io::Result<Calendar> {
        Ok(Calendar {
            socket,
            page: self.page.copy()?,
            behind: self.behind,
        })
    }

    /// The file of the page, for the kernel to map.
    pub fn page_fd(&self) -> RawFd {
        self.page.file().as_raw_fd()
    }

    /// Have the kernel, which waits for its turn, become two. What the other one is to have goes with the message. With a seed
    /// other than 0 the other one draws other random numbers.
    pub fn order_fork(&self, seed: u64, files: &[RawFd]) -> io::Result<()> {
        let message = Message {
            op: Op::Fork,
            seq: 0,
            time: seed,
        };
        socket::write_with_descriptors(self.socket.as_raw_fd(), &message.encode(), files)
    }

    /// Read the kernel's next message, if there is one.
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

    /// Answer a kernel's `Start`, which gives it its first turn, at `now`. The page goes with the answer.
    pub fn welcome(&mut self, message: &Message, now: u64) -> io::Result<()> {
        self.page.set_time(now);
        self.page.set_free_until(now);
        let answer = Message {
            op: Op::Ack,
            seq: message.seq,
            time: u64::from(ID),
        };
        let log = std::fs::File::options().write(true).open("/dev/null");
        let page = self.page.file().as_raw_fd();
        // Where it may be opened, and where this process may open a file more; else the page again, which the kernel has anyway.
        let log_number = log.as_ref().map_or(page, |log| log.as_raw_fd());
        let descriptors = [page, log_number];
        socket::write_with_descriptors(self.socket.as_raw_fd(), &answer.encode(), &descriptors)
    }

    /// When the kernel has asked to run next; None: it has not.
    pub fn request(&self) -> Option<u64> {
        self.page
            .request()
            .map(|request| request.saturating_add(self.behind))
    }

    /// How far the kernel has come.
    pub fn time(&self) -> u64 {
        self.page.time().saturating_add(self.behind)
    }

    /// How far the kernel has come by its own time, without its pauses.
    pub fn own_time(&self) -> u64 {
        self.page.time()
    }

    /// Let the kernel's time fall behind the lab's by so many nanoseconds, which it never knows of.
    pub fn fall_behind(&mut self, passed: u64) {
        self.behind += passed;
    }

    /// Take the notes of what the kernel has sent since this was last called. It sends no message of it.
    pub fn take_sent(&self) -> io::Result<Vec<Note>> {
        let count = self.page.sent_count() as usize;
        if count > NOTES {
            return Err(lie(format!(
                "it noted {count} frames, and there is room for {NOTES}"
            )));
        }
        self.page.set_sent_count(0);
        let notes = (0..count).map(|index| self.page.sent(index));
        Ok(notes
            .map(|note| Note {
                time: note.time.saturating_add(self.behind),
                ..note
            })
            .collect())
    }

    /// How many of the frames that were due in its turn the kernel has taken.
    pub fn taken(&self) -> usize {
        self.page.due_taken() as usize
    }

    /// Give the kernel a turn at `now`. It may go on by itself to just before `free_until`.
    ///
    /// `local`: the time between the kernel's start and `now`. The two numbers: a bit for each device that has input for the kernel, and
    /// one for each that has other settings.
    /// `due`: frames that come before the turn is over.
    pub fn run(
        &mut self,
        now: u64,
        local: u64,
        free_until: u64,
        (calls, changed): (u64, u64),
        due: &[Note],
    ) -> io::Result<()> {
        self.page.set_calls(calls);
        self.page.set_changed(changed);
        self.page.set_due(due.iter().map(|note| Note {
            time: note.time - self.behind,
            ..*note
        }));
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

/// The error for something that no kernel of ours does.
pub fn lie(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
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
    fn more_notes_than_there_is_room_for_are_a_lie() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let calendar = Calendar::new(ours.into()).unwrap();
        calendar.page.set_sent_count(NOTES as u32);
        assert_eq!(calendar.take_sent().unwrap().len(), NOTES);
        calendar.page.set_sent_count(NOTES as u32 + 1);
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
        bytes[0] = 11;
        assert_eq!(Message::decode(&bytes), None);
    }
}
