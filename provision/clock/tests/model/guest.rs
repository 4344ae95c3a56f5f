//! A kernel on the real clock that does what its script says. What a kernel may do in one way or another it does by chance:
//! note what it sends or call, and go on within its turn or end it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::{self, JoinHandle};

use nix::sys::socket::{shutdown, MsgFlags, Shutdown};

use crate::kernel::{
    read_with, vhost, write, Card, Clock, Kernel, Read, AVAILABLE, BUFFERS, DUE_COUNT, DUE_TAKEN,
    HELLO, NOTES, QUEUE, SENT_COUNT, USED,
};
use crate::script::{Chance, Entry, Frame, Script};

const ENTRIES: u16 = 256;
const BUFFER: usize = 2048;
/// Behind the buffers for input, as many for output.
const OUTPUT: usize = BUFFERS + ENTRIES as usize * BUFFER;
const NET_HEADER: usize = 12;
// On the page.
const FREE_UNTIL: usize = 8;
const TIME: usize = 16;
const SENT: usize = NOTES + 24;
const NOTE: usize = 16;
const DUE: usize = SENT + NOTE * ENTRIES as usize;
/// Of the notes that a turn has room for.
const MOST_NOTED: u32 = 200;

/// (when, by which device, up to which entry of its queue).
type Note = (u64, usize, u16);

struct Guest {
    kernel: Kernel,
    cards: Vec<Card>,
    script: Script,
    habits: Chance,
    /// By port, how much of its input has been looked at, and how much has been put out.
    seen: Vec<u16>,
    sent: Vec<u16>,
}

/// One that has been started. It ends with the clock.
pub struct Started {
    thread: JoinHandle<Script>,
    calendar: OwnedFd,
}

impl Started {
    /// End it, unless it has ended: what has happened on it.
    pub fn end(self) -> Vec<Entry> {
        let _ = shutdown(self.calendar.as_raw_fd(), Shutdown::Both);
        self.thread.join().expect("a kernel without a fault").log
    }
}

pub fn start(clock: &Clock, host: usize, ports: usize, script: Script) -> Started {
    let mut kernel = Kernel::new(clock, host, ports);
    let calendar = kernel.calendar.try_clone().expect("a descriptor");
    let thread = thread::spawn(move || {
        assert!(kernel.start(), "it got no page");
        let cards: Vec<Card> = (0..=ports).map(|at| Card::new(&kernel, at)).collect();
        cards[0].say(&kernel, HELLO);
        let mut guest = Guest {
            kernel,
            cards,
            script,
            habits: Chance(host as u64),
            seen: vec![0; ports],
            sent: vec![0; ports],
        };
        while guest.turn() {}
        guest.script
    });
    Started { thread, calendar }
}

impl Guest {
    /// From when it may act to when it may not, or less; then it waits for its next turn. False when the clock has ended.
    fn turn(&mut self) -> bool {
        let mut now = self.kernel.time();
        let free_until = u64::from_ne_bytes(self.kernel.page().get(FREE_UNTIL));
        let due = self.due();
        let mut taken = 0;
        loop {
            while due.get(taken).is_some_and(|note| note.0 <= now) {
                let (_, device, index) = due[taken];
                self.cards[device]
                    .memory
                    .put(USED + 2, &index.to_le_bytes());
                taken += 1;
            }
            let taken_so_far = (taken as u32).to_ne_bytes();
            self.kernel.page().put(DUE_TAKEN, &taken_so_far);
            let inbox = self.take_input();
            for (port, frame) in self.script.act(now, inbox) {
                self.send(port, now, &frame);
            }
            let next = self.script.timer.into_iter();
            let next = next.chain(due.get(taken).map(|note| note.0)).min();
            let ends = taken == due.len() && self.habits.one_in(4);
            match next.filter(|next| *next < free_until && !ends) {
                Some(next) => now = next,
                None => break,
            }
            self.kernel.page().put(TIME, &now.to_ne_bytes());
        }
        let mut bytes = [0; 16];
        self.kernel.wait(self.script.timer)
            && read_with(&self.kernel.calendar, &mut bytes, MsgFlags::empty()).0 == Read::Bytes(16)
    }

    /// What comes in this turn, and lies in its queues already.
    fn due(&self) -> Vec<Note> {
        let page = self.kernel.page();
        let count = u32::from_ne_bytes(page.get(DUE_COUNT)) as usize;
        let note = |number| {
            let at = DUE + NOTE * number;
            let word = |at| u32::from_ne_bytes(page.get(at));
            let time = u64::from_ne_bytes(page.get(at));
            (time, word(at + 8) as usize, word(at + 12) as u16)
        };
        (0..count).map(note).collect()
    }

    fn take_input(&mut self) -> Vec<Frame> {
        let mut inbox = Vec::new();
        for (port, seen) in self.seen.iter_mut().enumerate() {
            let card = &self.cards[port + 1];
            let used = u16::from_le_bytes(card.memory.get(USED + 2));
            while *seen != used {
                let entry = USED + 4 + 8 * usize::from(*seen % ENTRIES);
                let buffer = u32::from_le_bytes(card.memory.get(entry)) as usize;
                let length = u32::from_le_bytes(card.memory.get(entry + 4)) as usize;
                let whole: [u8; BUFFER] = card.memory.get(BUFFERS + BUFFER * buffer);
                assert_eq!(whole[10..NET_HEADER], [1u8, 0], "one buffer holds it");
                inbox.push((port, whole[NET_HEADER..length].to_vec()));
                *seen = seen.wrapping_add(1);
            }
            card.give_back();
        }
        inbox
    }

    fn send(&mut self, port: usize, now: u64, frame: &[u8]) {
        let (device, slot) = (port + 1, usize::from(self.sent[port] % ENTRIES));
        let memory = &self.cards[device].memory;
        let (address, length) = (OUTPUT + BUFFER * slot, NET_HEADER + frame.len());
        memory.put(address, &[0; NET_HEADER]);
        memory.put(address + NET_HEADER, frame);
        let descriptor = [address as u64, length as u64]
            .map(u64::to_le_bytes)
            .concat();
        memory.put(QUEUE + 16 * slot, &descriptor);
        let entry = QUEUE + AVAILABLE + 4 + 2 * slot;
        memory.put(entry, &(slot as u16).to_le_bytes());
        self.sent[port] = self.sent[port].wrapping_add(1);
        memory.put(QUEUE + AVAILABLE + 2, &self.sent[port].to_le_bytes());
        let page = self.kernel.page();
        let count = u32::from_ne_bytes(page.get(SENT_COUNT));
        if count < MOST_NOTED && !self.habits.one_in(4) {
            let at = SENT + NOTE * count as usize;
            page.put(at, &now.to_ne_bytes());
            page.put(at + 8, &(device as u32).to_ne_bytes());
            page.put(at + 12, &u32::from(self.sent[port]).to_ne_bytes());
            page.put(SENT_COUNT, &(count + 1).to_ne_bytes());
            return;
        }
        let kick = [1u32, 0].map(u32::to_ne_bytes).concat();
        let mut answer = [0; 64];
        let fd = &self.kernel.devices[device];
        write(fd, &vhost(35, &kick)).expect("the clock is there");
        assert_eq!(
            read_with(fd, &mut answer, MsgFlags::empty()).0,
            Read::Bytes(20)
        );
    }
}
