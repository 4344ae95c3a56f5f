//! A small kernel that the test steps through: it acts until it has sent a message, and goes on when the clock has served it.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsRawFd;

use nix::sys::socket::{socketpair, AddressFamily, MsgFlags, SockFlag, SockType};

use crate::device::{Device, Kind};
use crate::host::Host;
use crate::kernel::{
    read_with, vhost, write, write_with, Kernel, Read, Shared, AVAILABLE, BUFFERS, DUE_COUNT,
    DUE_TAKEN, HELLO, NOTES, OWN, PAGE, QUEUE, SENT_COUNT, START, USED,
};
use crate::scheduler::{Progress, Scheduler};
use crate::traffic::Heard;

pub const MEMORY: usize = 2 << 20;
const ENTRIES: u16 = 256;
/// How many buffers for input each device has, which is more than the frames that come.
const GIVEN: u16 = 8;
const BUFFER: usize = 2048;
const OUTPUT: usize = BUFFERS + ENTRIES as usize * BUFFER;
const NET_HEADER: usize = 12;
const CONSOLE: usize = 0;
// On the page.
const FREE_UNTIL: usize = 8;
const TIME: usize = 16;
const SENT: usize = NOTES + 24;
const NOTE: usize = 16;
const DUE: usize = SENT + NOTE * ENTRIES as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    None,
    All,
    /// The first, the third and so on.
    EveryOther,
}

/// What a kernel may do in one way or another.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Which frames it notes on its page when it sends them, instead of calling.
    pub notes: Notes,
    /// It ends its turn when it has nothing to do now, and does not go on by itself to what comes later.
    pub ends_early: bool,
}

/// What has happened on a host: when, and the frame's mark with the port by which it came.
pub type Log = Vec<(u64, usize, u8)>;

/// Whose message the clock has to serve next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    Calendar,
    Device(usize),
}

pub struct Guest {
    pub log: Log,
    pub kernel: Kernel,
    index: usize,
    /// By device.
    pub memories: Vec<Shared>,
    habits: Habits,
    /// What it sends by its first port, and when: by itself.
    timers: VecDeque<(u64, u8)>,
    /// Whether it sends what it gets by one port out by the other.
    forwards: bool,
    outbox: VecDeque<(usize, u8)>,
    now: u64,
    taken: usize,
    /// By port.
    seen: Vec<u16>,
    put_out: Vec<u16>,
}

/// Put a kernel with so many ports on the clock.
pub fn start(scheduler: &mut Scheduler, index: usize, ports: usize) -> Kernel {
    let pair = |_| {
        let flag = SockFlag::SOCK_CLOEXEC;
        socketpair(AddressFamily::Unix, SockType::Stream, None, flag).expect("sockets")
    };
    let (mut ours, mut theirs): (Vec<_>, Vec<_>) = (0..3 + ports).map(pair).unzip();
    let devices = theirs.split_off(2).into_iter().enumerate();
    let kind = |device| match device {
        CONSOLE => Kind::Console,
        _ => Kind::Network {
            mac: [2; 6],
            is_trunk: false,
        },
    };
    let devices = devices.map(|(number, fd)| Device::new(kind(number), fd));
    let (line, calendar) = (theirs.pop().expect("two"), theirs.pop().expect("two"));
    let processor = scheduler.topology.hosts[index].processor.clone();
    let host = Host::new(calendar, line, devices.collect(), processor, scheduler.now);
    scheduler.start(index, host.expect("a page"));
    let devices = ours.split_off(2);
    let (line, calendar) = (ours.pop().expect("two"), ours.pop().expect("two"));
    Kernel {
        calendar,
        line,
        devices,
        page: None,
    }
}

/// Let all kernels come up, in their first window.
pub fn boot_all(scheduler: &mut Scheduler, guests: &mut [Guest]) {
    guests.iter().for_each(|guest| guest.report(scheduler));
    assert_eq!(scheduler.advance(None), Progress::Passed);
    let mut waiting: Vec<usize> = (0..guests.len()).collect();
    while !waiting.is_empty() {
        let has_turn = |index: &usize| scheduler.hosts[*index].as_ref().unwrap().is_busy();
        let at = waiting.iter().position(has_turn).expect("one has a turn");
        guests[waiting.remove(at)].boot(scheduler);
    }
}

impl Guest {
    pub fn new(
        index: usize,
        kernel: Kernel,
        habits: Habits,
        timers: &[(u64, u8)],
        forwards: bool,
    ) -> Guest {
        let devices = kernel.devices.len();
        Guest {
            log: Log::new(),
            kernel,
            index,
            memories: (0..devices).map(|_| Shared::new(MEMORY)).collect(),
            habits,
            timers: timers.iter().copied().collect(),
            forwards,
            outbox: VecDeque::new(),
            now: 0,
            taken: 0,
            seen: vec![0; devices - 1],
            put_out: vec![0; devices - 1],
        }
    }

    pub fn report(&self, lab: &mut Scheduler) {
        assert!(self.kernel.tell(START));
        lab.hear_calendar(self.index);
    }

    /// Its first turn, in which it sets its devices up and greets.
    pub fn boot(&mut self, lab: &mut Scheduler) {
        let (read, files) = self.read_calendar();
        assert_eq!(read, Read::Bytes(16), "it may run");
        let page = files.into_iter().next().expect("with its page");
        let page = Shared::of(File::from(page), PAGE);
        page.put(OWN, &1u32.to_ne_bytes());
        self.kernel.page = Some(page);
        for device in 0..self.memories.len() {
            for (request, payload) in Kernel::setup(MEMORY as u64, true) {
                let file = [self.memories[device].file.as_raw_fd()];
                let files = if request == 5 { &file[..] } else { &[] };
                let fd = &self.kernel.devices[device];
                let message = vhost(request, &payload);
                write_with(fd, &message, files, MsgFlags::empty()).expect("room");
                assert_eq!(lab.hear_device(self.index, device), Heard::Nothing);
                self.answered(device);
            }
            let memory = &self.memories[device];
            for entry in 0..usize::from(GIVEN) {
                let address = (BUFFERS + entry * BUFFER) as u64;
                let descriptor = [address, BUFFER as u64 | 2 << 32].map(u64::to_le_bytes);
                memory.put(16 * entry, &descriptor.concat());
                let number = (entry as u16).to_le_bytes();
                memory.put(AVAILABLE + 4 + 2 * entry, &number);
            }
            memory.put(AVAILABLE + 2, &GIVEN.to_le_bytes());
        }
        self.put(CONSOLE, 0, HELLO);
        self.kick(CONSOLE);
        assert_eq!(lab.hear_device(self.index, CONSOLE), Heard::Console);
        for piece in lab.take_console_output(self.index).expect("no lie") {
            lab.note_agent_frames(self.index, &piece).expect("no lie");
        }
        let host = lab.hosts[self.index].as_mut().expect("it is up");
        host.devices[CONSOLE].done().expect("it is there");
        self.answered(CONSOLE);
        self.end_turn();
        lab.hear_calendar(self.index);
    }

    /// Whether it has been given a turn; it begins it then.
    pub fn begins_a_turn(&mut self) -> bool {
        if self.read_calendar().0 != Read::Bytes(16) {
            return false;
        }
        let now = self.kernel.time();
        assert!(now >= self.now, "its time goes on");
        (self.now, self.taken) = (now, 0);
        self.happens();
        true
    }

    /// Until when it may go by itself.
    pub fn free_until(&self) -> u64 {
        u64::from_ne_bytes(self.kernel.page().get(FREE_UNTIL))
    }

    /// Act until a message has been sent: which.
    pub fn act(&mut self) -> Sent {
        loop {
            while let Some((port, mark)) = self.outbox.pop_front() {
                if let Some(sent) = self.send(port, mark) {
                    return sent;
                }
            }
            let due = self.due();
            let timer = self.timers.front().map(|timer| timer.0);
            let coming = due.get(self.taken).map(|note| note.0);
            let next = timer.into_iter().chain(coming).min();
            let ends = coming.is_none() && self.habits.ends_early;
            match next.filter(|next| *next < self.free_until() && !ends) {
                Some(next) => self.now = next,
                None => {
                    self.end_turn();
                    return Sent::Calendar;
                }
            }
            self.kernel.page().put(TIME, &self.now.to_ne_bytes());
            self.happens();
        }
    }

    /// The clock has answered what was sent by a device.
    pub fn answered(&self, device: usize) {
        let mut answer = [0; 64];
        let fd = &self.kernel.devices[device];
        let read = read_with(fd, &mut answer, MsgFlags::MSG_DONTWAIT).0;
        assert_eq!(read, Read::Bytes(20), "it is answered");
    }

    fn read_calendar(&self) -> (Read, Vec<std::os::fd::OwnedFd>) {
        read_with(&self.kernel.calendar, &mut [0; 16], MsgFlags::MSG_DONTWAIT)
    }

    fn end_turn(&self) {
        let timer = self.timers.front().map(|timer| timer.0);
        assert!(self.kernel.wait(timer), "the clock is there");
    }

    /// All that happens on it now.
    fn happens(&mut self) {
        let due = self.due();
        while due.get(self.taken).is_some_and(|note| note.0 <= self.now) {
            let (_, device, index) = due[self.taken];
            self.memories[device].put(USED + 2, &index.to_le_bytes());
            self.taken += 1;
        }
        let taken = (self.taken as u32).to_ne_bytes();
        self.kernel.page().put(DUE_TAKEN, &taken);
        for port in 0..self.seen.len() {
            while let Some(mark) = self.take(port) {
                self.log.push((self.now, port, mark));
                if self.forwards {
                    self.outbox.push_back((1 - port, mark));
                }
            }
        }
        while self.timers.front().is_some_and(|one| one.0 <= self.now) {
            let (_, mark) = self.timers.pop_front().expect("it was there");
            self.outbox.push_back((0, mark));
        }
    }

    fn due(&self) -> Vec<(u64, usize, u16)> {
        let page = self.kernel.page();
        let count = u32::from_ne_bytes(page.get(DUE_COUNT)) as usize;
        let word = |at| u32::from_ne_bytes(page.get(at));
        let places = (0..count).map(|number| DUE + NOTE * number);
        places
            .map(|at| {
                let time = u64::from_ne_bytes(page.get(at));
                (time, word(at + 8) as usize, word(at + 12) as u16)
            })
            .collect()
    }

    /// The mark of the next frame that has come by a port.
    fn take(&mut self, port: usize) -> Option<u8> {
        let memory = &self.memories[port + 1];
        let used = u16::from_le_bytes(memory.get(USED + 2));
        if self.seen[port] == used {
            return None;
        }
        let entry = USED + 4 + 8 * usize::from(self.seen[port] % ENTRIES);
        let buffer = u32::from_le_bytes(memory.get(entry)) as usize;
        self.seen[port] = self.seen[port].wrapping_add(1);
        Some(memory.get::<1>(BUFFERS + BUFFER * buffer + NET_HEADER + 14)[0])
    }

    fn send(&mut self, port: usize, mark: u8) -> Option<Sent> {
        let device = port + 1;
        let mut bytes = [0; NET_HEADER + 15];
        bytes[NET_HEADER + 14] = mark;
        self.put(device, self.put_out[port], &bytes);
        self.put_out[port] += 1;
        let is_odd = self.put_out.iter().sum::<u16>() % 2 == 1;
        let notes = match self.habits.notes {
            Notes::None => false,
            Notes::All => true,
            Notes::EveryOther => is_odd,
        };
        if !notes {
            self.kick(device);
            return Some(Sent::Device(device));
        }
        let page = self.kernel.page();
        let count = u32::from_ne_bytes(page.get(SENT_COUNT));
        let at = SENT + NOTE * count as usize;
        page.put(at, &self.now.to_ne_bytes());
        page.put(at + 8, &(device as u32).to_ne_bytes());
        let index = u32::from(self.put_out[port]).to_ne_bytes();
        page.put(at + 12, &index);
        page.put(SENT_COUNT, &(count + 1).to_ne_bytes());
        None
    }

    /// Put bytes into a device's output queue, of which `before` entries have been used.
    fn put(&self, device: usize, before: u16, bytes: &[u8]) {
        let memory = &self.memories[device];
        let slot = usize::from(before);
        let address = OUTPUT + BUFFER * slot;
        memory.put(address, bytes);
        let descriptor = [address as u64, bytes.len() as u64].map(u64::to_le_bytes);
        memory.put(QUEUE + 16 * slot, &descriptor.concat());
        memory.put(QUEUE + AVAILABLE + 4 + 2 * slot, &before.to_le_bytes());
        memory.put(QUEUE + AVAILABLE + 2, &(before + 1).to_le_bytes());
    }

    fn kick(&self, device: usize) {
        let kick = vhost(35, &[1u32, 0].map(u32::to_ne_bytes).concat());
        write(&self.kernel.devices[device], &kick).expect("the clock is there");
    }
}
