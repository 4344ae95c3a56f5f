//! What kernels say and send in their turns, and where it goes.

use std::io;

use crate::calendar::lie;
use crate::course::Fate;
use crate::device::Event;
use crate::frames;
use crate::host::{State, CONSOLE};
use crate::orders::Captured;
use crate::rings::QUEUE_SIZE;
use crate::scheduler::Scheduler;
use crate::socket::Received;
use crate::trunk;

/// How many bytes of a console's output may wait for the reader when there is more of it: as much as a queue has room for in an
/// honest kernel, whose pieces are a page. An honest one waits, and has put out nothing more.
const MOST_UNREAD: usize = QUEUE_SIZE as usize * 4096;

/// What a message of a kernel's device leaves to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Nothing,
    /// The kernel has closed the device's socket.
    Closed,
    /// Output of the console is to be taken by `take_console_output`; until then the kernel waits, within its turn.
    Console,
}

impl Scheduler {
    /// Take in one message of a kernel's calendar, if there is one.
    pub fn hear_calendar(&mut self, index: usize) {
        let Some(host) = &mut self.hosts[index] else {
            return;
        };
        match host.hear(self.epoch_ns, self.window.unwrap_or(self.now)) {
            Ok(Received::Some(true)) => {
                // A kernel that has just reported has its first turn in the next window.
                if matches!(host.state, State::Fresh(_)) {
                    return;
                }
                match self.pass_on_noted(index) {
                    Ok(()) => self.end_turn(index),
                    Err(error) => self.fail(index, error),
                }
            }
            Ok(Received::Some(false) | Received::Nothing) => {}
            Ok(Received::Closed) => {
                self.remove(index, None);
                self.give_turns();
            }
            Err(error) => self.fail(index, error),
        }
    }

    /// Take in one message of a kernel's device, if there is one.
    pub fn hear_device(&mut self, index: usize, device: usize) -> Heard {
        let Some(host) = &mut self.hosts[index] else {
            return Heard::Nothing;
        };
        let heard = match host.devices[device].receive() {
            Ok(Event::Nothing) => return Heard::Nothing,
            Ok(Event::Closed) => return Heard::Closed,
            Ok(event) => self.device_message(index, device, event),
            Err(error) => Err(error),
        };
        heard.unwrap_or_else(|error| {
            self.fail(index, error);
            Heard::Nothing
        })
    }

    fn device_message(&mut self, index: usize, device: usize, event: Event) -> io::Result<Heard> {
        let Some(host) = &mut self.hosts[index] else {
            return Ok(Heard::Nothing);
        };
        host.count_message()?;
        match event {
            Event::Output if !host.is_busy() => Err(lie("it sent something, and has no turn")),
            Event::Output if device == CONSOLE && host.unread.waiting() > MOST_UNREAD => {
                Err(lie("it does not wait until what it has put out is read"))
            }
            Event::Output if device == CONSOLE => Ok(Heard::Console),
            Event::Output => {
                self.pass_on_output(index, device)?;
                Ok(Heard::Nothing)
            }
            _ => Ok(Heard::Nothing),
        }
    }

    /// Send the frames that a kernel has noted on its page since this was last done.
    fn pass_on_noted(&mut self, index: usize) -> io::Result<()> {
        let Some(host) = &mut self.hosts[index] else {
            return Ok(());
        };
        let notes = host.take_notes()?;
        let mut taken = vec![0; host.devices.len()];
        for note in notes {
            let Some(host) = &mut self.hosts[index] else {
                return Ok(());
            };
            for frame in host.take_noted(&note, &mut taken)? {
                self.send_by(index, note.device, note.time, frame);
            }
        }
        Ok(())
    }

    /// Send all that a kernel has put out by a port, and tell the kernel, which waits for that.
    fn pass_on_output(&mut self, index: usize, device: usize) -> io::Result<()> {
        self.pass_on_noted(index)?;
        let Some(host) = &mut self.hosts[index] else {
            return Ok(());
        };
        let now = host.time()?;
        for frame in host.devices[device].rings.take_output(None)? {
            self.send_by(index, device, now, frame);
        }
        match &mut self.hosts[index] {
            Some(host) => host.devices[device].done(),
            None => Ok(()),
        }
    }

    /// Take what a host has put out on its console, in pieces. The kernel waits until its console's device is `done`.
    pub fn take_console_output(&mut self, index: usize) -> io::Result<Vec<Vec<u8>>> {
        self.pass_on_noted(index)?;
        let Some(host) = &mut self.hosts[index] else {
            return Ok(Vec::new());
        };
        let now = host.time()?;
        let pieces = host.devices[CONSOLE].rings.take_output(None)?;
        for piece in &pieces {
            host.course.borrow_mut().output(now, piece);
        }
        Ok(pieces)
    }

    /// Find the agent's frames in a piece of console output, and end the waits for what has come with it.
    pub fn note_agent_frames(&mut self, index: usize, piece: &[u8]) -> io::Result<()> {
        let Some(host) = &mut self.hosts[index] else {
            return Ok(());
        };
        for head in host.from_agent.feed(piece)? {
            if matches!(head.kind, frames::STDOUT | frames::STDERR | frames::EXIT) {
                let ends = head.kind == frames::EXIT;
                self.gate.heard(index, head.channel, ends);
            }
        }
        Ok(())
    }

    /// A frame leaves a kernel at `now` by one of its devices. Where that is a trunk, and the frame no port's, nobody gets it.
    fn send_by(&mut self, kernel: usize, device: usize, now: u64, frame: Vec<u8>) {
        if !self.topology.hosts[kernel].trunk {
            return self.send(kernel, (kernel, device - 1), None, now, frame);
        }
        let Some((tag, frame)) = trunk::untagged(frame) else {
            return;
        };
        let host = self.hosts[kernel].as_mut();
        if let Some((seat, _)) = host.and_then(|host| host.seats.of(tag)) {
            let of = seat.of;
            self.send(kernel, of, Some(tag), now, frame);
        }
    }

    /// A frame leaves a host's port at `now`, from that kernel, on whose trunk it has had that tag.
    fn send(
        &mut self,
        kernel: usize,
        from: (usize, usize),
        tag: Option<u16>,
        now: u64,
        frame: Vec<u8>,
    ) {
        let Some(host) = &mut self.hosts[kernel] else {
            return;
        };
        let (index, port) = from;
        let course = self.course.of(index);
        let content = course.borrow().content(&frame);
        let Some(leaves) = host.process(now, frame.len()) else {
            course.borrow_mut().overloaded(now, port, &content);
            return self.links.count_overrun(from);
        };
        let watch = match tag.and_then(|tag| host.seats.of(tag)) {
            Some((_, watch)) => watch,
            None => &mut host.watch,
        };
        if !watch.passes(now, port, content.hash) {
            let fate = Fate::dropped_at(leaves);
            return course.borrow_mut().sent(now, port, &content, &fate);
        }
        let earliest = self.window.unwrap_or(self.now);
        if let Some(captured) = &mut self.captured {
            captured.push(Captured::new(leaves, from, &frame));
        }
        let (fate, first_drop) = self
            .links
            .send(&mut self.hosts, from, leaves, earliest, frame);
        course.borrow_mut().sent(now, port, &content, &fate);
        if first_drop {
            let name = &self.topology.hosts[index].name;
            eprintln!("{name}: no more of what it sends is kept under way; the rest is dropped, as by a queue");
        }
    }
}
