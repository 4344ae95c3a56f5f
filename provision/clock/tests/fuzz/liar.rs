//! A kernel whose every step is a byte of the input, beside an honest one.

use nix::sys::socket::MsgFlags;

use crate::guest::{self, Guest, Habits, Notes, Sent, MEMORY};
use crate::host::CONSOLE;
use crate::kernel::{
    read_with, vhost, write_with, Read, AVAILABLE, BUFFERS, NOTES, OWN, PAGE, QUEUE, USED, WAIT,
};
use crate::orders::{HostSpec, PortSettings, Topology};
use crate::scheduler::{Progress, Scheduler};
use crate::traffic::Heard;
use crate::wire::Settings;

const HONEST: usize = 0;
const LIAR: usize = 1;
const DEVICES: usize = 2;
const MS: u64 = 1_000_000;
/// When the honest kernel sends something to the other, by itself.
const TIMERS: [(u64, u8); 6] = [
    (2 * MS, 0),
    (3 * MS, 1),
    (4 * MS, 2),
    (5 * MS, 3),
    (6 * MS, 4),
    (7 * MS, 5),
];
/// Where on the page, and in a device's memory, something matters.
const WORDS: [usize; 12] = [
    8,
    16,
    24,
    OWN,
    OWN + 4,
    OWN + 8,
    NOTES,
    NOTES + 8,
    NOTES + 16,
    NOTES + 24,
    NOTES + 32,
    NOTES + 36,
];
const PLACES: [usize; 8] = [
    0,
    AVAILABLE,
    USED,
    QUEUE,
    QUEUE + AVAILABLE,
    QUEUE + USED,
    BUFFERS,
    QUEUE + 16,
];

/// What is left of the input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(*first)
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (some, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        some
    }
}

struct Lab {
    scheduler: Scheduler,
    /// The honest kernel, then the liar.
    guests: Vec<Guest>,
    sent: Option<Sent>,
}

fn topology() -> Topology {
    let host = |number: usize| HostSpec {
        name: format!("h{number}"),
        ports: vec![format!("02:00:00:00:00:0{number}")],
        processor: None,
        trunk: false,
        within: None,
    };
    let wire = |host| PortSettings {
        host,
        port: 0,
        wire: Settings {
            delay_ns: MS,
            ..Settings::default()
        },
    };
    Topology {
        hosts: vec![host(HONEST), host(LIAR)],
        links: vec![[(HONEST, 0), (LIAR, 0)]],
        wires: vec![wire(HONEST), wire(LIAR)],
    }
}

impl Lab {
    fn new() -> Lab {
        let mut scheduler = Scheduler::new(0, 2, topology()).expect("links");
        let habits = Habits {
            notes: Notes::All,
            ends_early: true,
        };
        let timers = [&TIMERS[..], &[(2 * MS, 9)]];
        let mut guests = Vec::new();
        for (index, timers) in timers.into_iter().enumerate() {
            let kernel = guest::start(&mut scheduler, index, 1);
            guests.push(Guest::new(index, kernel, habits, timers, false));
        }
        guest::boot_all(&mut scheduler, &mut guests);
        Lab {
            scheduler,
            guests,
            sent: None,
        }
    }

    /// The honest kernel does what it can, and the lab's time goes on if it may.
    fn goes_on(&mut self) {
        if self.guests[HONEST].begins_a_turn() {
            self.sent = Some(self.guests[HONEST].act());
        }
        match self.sent.take() {
            Some(Sent::Calendar) => self.scheduler.hear_calendar(HONEST),
            Some(Sent::Device(_)) => unreachable!("it notes what it sends"),
            None if self.scheduler.somebody_has_a_turn() => {}
            None => {
                let before = self.scheduler.now;
                self.scheduler.close_window();
                let wakeup = self.scheduler.now + 10 * MS;
                assert_eq!(self.scheduler.advance(Some(wakeup)), Progress::Passed);
                assert!(self.scheduler.now >= before, "time goes on");
            }
        }
    }

    fn serve(&mut self, device: usize) {
        if self.scheduler.hear_device(LIAR, device) != Heard::Console {
            return;
        }
        let taken = self.scheduler.take_console_output(LIAR);
        let noted = taken.and_then(|pieces| {
            let mut pieces = pieces.iter();
            pieces.try_for_each(|piece| self.scheduler.note_agent_frames(LIAR, piece))
        });
        let host = self.scheduler.hosts[LIAR].as_mut();
        let done = noted.and_then(|()| host.map_or(Ok(()), |host| host.devices[CONSOLE].done()));
        if let Err(error) = done {
            self.scheduler.fail(LIAR, error);
        }
    }

    fn step(&mut self, input: &mut Input) {
        let kernel = &self.guests[LIAR].kernel;
        match input.byte() % 10 {
            0 => self.goes_on(),
            1 => self.scheduler.hear_calendar(LIAR),
            2 => self.serve(input.byte() % DEVICES),
            3 => {
                let (at, count) = (input.byte(), input.byte() % 9);
                let at = WORDS.get(at).copied().unwrap_or(at * 36);
                let bytes = input.bytes(count);
                kernel.page().put(at.min(PAGE - 8), bytes);
            }
            4 => {
                let (device, place) = (input.byte() % DEVICES, input.byte() % PLACES.len());
                let at = PLACES[place] + 2 * input.byte();
                let count = input.byte() % 64;
                self.guests[LIAR].memories[device].put(at.min(MEMORY - 64), input.bytes(count));
            }
            5 => {
                let (device, request) = (input.byte() % DEVICES, input.byte() as u32);
                let count = input.byte() % 64;
                let message = vhost(request, input.bytes(count));
                self.send(1 + device, &message);
            }
            6 => {
                let count = input.byte() % 17;
                self.send(0, input.bytes(count));
            }
            7 => {
                let (device, count) = (input.byte() % DEVICES, input.byte() % 64);
                self.send(1 + device, input.bytes(count));
            }
            8 => {
                kernel.tell(WAIT);
            }
            _ => self.drain(),
        }
    }

    /// To the calendar, or to a device.
    fn send(&self, to: usize, bytes: &[u8]) {
        let kernel = &self.guests[LIAR].kernel;
        let fd = match to {
            0 => &kernel.calendar,
            _ => &kernel.devices[to - 1],
        };
        if !bytes.is_empty() {
            let _ = write_with(fd, bytes, &[], MsgFlags::MSG_DONTWAIT);
        }
    }

    fn drain(&self) {
        let kernel = &self.guests[LIAR].kernel;
        for fd in kernel.devices.iter().chain([&kernel.calendar]) {
            let read = || read_with(fd, &mut [0; 4096], MsgFlags::MSG_DONTWAIT).0;
            while matches!(read(), Read::Bytes(_)) {}
        }
    }

    /// Without the liar, the honest kernel has a turn whenever it asks for one.
    fn others_go_on(&mut self) {
        self.scheduler.fail(LIAR, std::io::Error::other("enough"));
        let before = self.scheduler.now;
        for _ in 0..20 {
            self.goes_on();
        }
        assert!(self.scheduler.hosts[HONEST].is_some(), "it did nothing");
        assert!(self.scheduler.now > before, "the lab's time goes on");
    }
}

pub fn act(input: &[u8]) {
    let mut lab = Lab::new();
    let mut input = Input(input);
    while !input.0.is_empty() && lab.scheduler.hosts[LIAR].is_some() {
        lab.step(&mut input);
    }
    lab.others_go_on();
}

/// What a kernel does that does nothing wrong: it has turns, notes a frame, calls for another, and says something.
pub fn seeds() -> Vec<Vec<u8>> {
    let turn = [0, 0, 0, 0, 0, 9, 8, 1, 0, 0, 0];
    let request = |time: u64| {
        let time = time.to_ne_bytes();
        [&[3, 5, 8][..], &time, &[3, 4, 4, 1, 0, 0, 0]].concat()
    };
    // The first descriptor of the output queue: an address, a length, and no more.
    let descriptor = [BUFFERS as u64, 60].map(u64::to_ne_bytes).concat();
    let output = |device: u8| {
        let put = [&[4, device, 3, 0, 16][..], &descriptor].concat();
        [&put[..], &[4, device, 4, 1, 2, 2, 0]].concat()
    };
    let kick = |device: u8| vec![5, device, 35, 8, 1, 0, 0, 0, 0, 0, 0, 0, 2, device];
    let note = [
        &[3, 9, 8][..],
        &(2 * MS).to_ne_bytes(),
        &[3, 10, 8, 1, 0, 0, 0, 1, 0, 0, 0, 3, 7, 4, 1, 0, 0, 0],
    ]
    .concat();
    let begin = [0, 0, 0, 0, 9];
    vec![
        [&begin[..], &turn, &request(3 * MS), &turn].concat(),
        [&begin[..], &output(1), &kick(1), &turn].concat(),
        [&begin[..], &output(0), &kick(0), &turn].concat(),
        [&begin[..], &output(1), &note, &turn].concat(),
        [&begin[..], &[6, 16, 8], &[0; 15], &[1, 9], &turn].concat(),
        vec![5, 1, 11, 8, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 5, 1, 24, 20],
    ]
}
