//! How frames and input come to a host: through a modelled processor, if it has one, into the buffers of its kernel.
//!
//! All times are nanoseconds of the lab's clock.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::{HashMap, VecDeque};
use std::io;

use crate::course;
use crate::host::{Host, CONSOLE, TURNS_FOR_EACH};
use crate::page::{Note, NOTES};
use crate::rings::Delivery;
use crate::storm::Watch;
use crate::trunk::{self, Inlet};
use crate::under_way::Held;

/// How many frames may wait for a modelled processor: Linux's default of net.core.netdev_max_backlog.
const BACKLOG_FRAMES: u64 = 1000;

/// In how many of its turns a kernel may leave a port's full buffers as they are. A kernel empties them when it is called, or
/// a look at the clock later if it had its interrupts off; one whose interface is down never does.
const TURNS_IN_VAIN: u32 = 16;
/// A frame on its way to a host. Frames that arrive at the same time are ordered by their origins, so that runs do not differ.
#[derive(Debug)]
pub struct Arrival {
    pub time: u64,
    /// The host and port that sent it, and its number among that port's frames.
    pub origin: (usize, usize, u64),
    /// The device by which it comes, and its tag there, if that is a trunk.
    pub device: usize,
    pub tag: Option<u16>,
    /// Whether the receiving host's modelled processor has processed it already.
    pub processed: bool,
    pub frame: Vec<u8>,
    /// Its share of what may be under way, which is free again when the frame has arrived or is lost.
    pub _held: Held,
}

impl Arrival {
    /// The frame as the device carries it.
    fn as_carried(&self) -> Cow<'_, [u8]> {
        match self.tag {
            Some(tag) => trunk::tagged(&self.frame, tag).into(),
            None => (&self.frame).into(),
        }
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Arrival) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Arrival {}

impl Ord for Arrival {
    fn cmp(&self, other: &Arrival) -> Ordering {
        (self.time, self.origin).cmp(&(other.time, other.origin))
    }
}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Arrival) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Frames that have come to a port whose buffers in the kernel were full. They wait in their order, as behind a card with flow
/// control.
pub struct Full {
    pub waiting: VecDeque<Arrival>,
    /// In how many turns the kernel has made no room since it last took a frame.
    pub in_vain: u32,
    /// Whether the kernel made no room when it was called, or has never had any. Then frames do not wait, but are lost.
    pub takes_nothing: bool,
}

impl Default for Full {
    fn default() -> Full {
        Full {
            waiting: VecDeque::new(),
            in_vain: 0,
            takes_nothing: true,
        }
    }
}

impl Host {
    /// A frame is on its way to this host.
    pub fn expect(&mut self, arrival: Arrival) {
        self.arrivals.push(Reverse(arrival));
    }

    /// Take back the frames of a (host, port), from that number on, which are still on their way to this host.
    pub fn take_back(&mut self, from: (usize, usize), first: u64) -> HashMap<u64, Vec<u8>> {
        let of_it = |one: &Arrival| (one.origin.0, one.origin.1) == from && one.origin.2 >= first;
        let (back, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.arrivals)
            .into_iter()
            .partition(|Reverse(one)| of_it(one));
        self.arrivals = others.into();
        back.into_iter()
            .map(|Reverse(one)| (one.origin.2, one.frame))
            .collect()
    }

    /// Process a frame that is there at `time`, by the modelled processor. Returns when that is done; None if too many frames
    /// wait for the processor.
    pub fn process(&mut self, time: u64, bytes: usize) -> Option<u64> {
        let Some(processor) = &self.processor else {
            return Some(time);
        };
        let start = self.processor_free.max(time);
        if start - time > BACKLOG_FRAMES * processor.frame_ns.max(1) {
            return None;
        }
        self.processor_free = start + processor.cost_ns(bytes);
        Some(self.processor_free)
    }

    /// Whether something is to be delivered at `time`.
    pub fn something_comes(&self, time: u64) -> bool {
        let come = |at: Option<u64>| at.is_some_and(|at| at <= time);
        self.arrivals
            .peek()
            .is_some_and(|first| first.0.time <= time)
            || come(self.input_at)
            || come(self.retry_at)
    }

    /// Deliver what comes at `time`: frames that waited for room, frames that arrive, and input.
    pub fn deliver(&mut self, time: u64) -> io::Result<()> {
        self.now = time;
        if self.retry_at.take().is_some() {
            self.put_waiting(time)?;
        }
        while self
            .arrivals
            .peek()
            .is_some_and(|first| first.0.time <= time)
        {
            let Reverse(mut arrival) = self.arrivals.pop().expect("it was there");
            if self.processor.is_some() && !arrival.processed {
                match self.process(time, arrival.frame.len()) {
                    Some(done) => {
                        arrival.time = done.max(time + 1);
                        arrival.processed = true;
                        self.arrivals.push(Reverse(arrival));
                    }
                    None => self.refuse(&arrival, time),
                }
                continue;
            }
            self.deliver_frame(arrival, time)?;
        }
        if self.input_at.take().is_some() {
            self.turns_left += TURNS_FOR_EACH;
            let (delivery, taken) = self.devices[CONSOLE]
                .rings
                .put_input(self.input.released())?;
            let text = &self.input.released()[..taken];
            self.course.borrow_mut().input(time, text);
            self.input.taken(taken);
            if delivery == Delivery::Call {
                self.call(CONSOLE, time);
            }
        }
        Ok(())
    }

    /// Put a frame into the kernel's buffers. Where they are full, or others wait already, it waits for room or is lost.
    fn deliver_frame(&mut self, arrival: Arrival, time: u64) -> io::Result<()> {
        let device = arrival.device;
        if self.full[device].waiting.is_empty() {
            if self.put(&arrival, time)? {
                return Ok(());
            }
            if self.full[device].takes_nothing || self.resumed_at == Some(time) {
                self.refuse(&arrival, time);
                return Ok(());
            }
            self.call(device, time);
        }
        self.turns_left += TURNS_FOR_EACH;
        self.full[device].waiting.push_back(arrival);
        Ok(())
    }

    /// There is no room for a frame: it is lost.
    fn refuse(&mut self, arrival: &Arrival, time: u64) {
        let (host, port, _) = arrival.origin;
        self.overrun.push((host, port));
        let (course, port, _) = self.receiver(arrival);
        course
            .borrow_mut()
            .refused(time, port, arrival.frame.len(), arrival.origin);
    }

    /// Whose frame it is that comes: the course and the port of a host with this kernel, and what that host knows of storms.
    fn receiver(&mut self, arrival: &Arrival) -> (course::Shared, usize, &mut Watch) {
        if let Some((seat, watch)) = arrival.tag.and_then(|tag| self.seats.of(tag)) {
            return (seat.course.clone(), seat.of.1, watch);
        }
        let port = arrival.device.saturating_sub(1);
        (self.course.clone(), port, &mut self.watch)
    }

    /// A frame has found room in the kernel's buffers.
    fn enter(&mut self, arrival: &Arrival, time: u64) {
        let (course, port, watch) = self.receiver(arrival);
        watch.comes(time, arrival.origin.0, &arrival.frame);
        course
            .borrow_mut()
            .got(time, port, arrival.frame.len(), arrival.origin);
        self.full[arrival.device].takes_nothing = false;
        self.turns_left += TURNS_FOR_EACH;
    }

    /// Put a frame into the kernel's buffers. False if they have no room.
    fn put(&mut self, arrival: &Arrival, time: u64) -> io::Result<bool> {
        match self.devices[arrival.device]
            .rings
            .put_input(&arrival.as_carried())?
            .0
        {
            Delivery::NoRoom => return Ok(false),
            Delivery::Silent => {}
            Delivery::Call => self.call(arrival.device, time),
        }
        self.enter(arrival, time);
        self.full[arrival.device].in_vain = 0;
        Ok(true)
    }

    /// After a turn, put frames that wait for room where the kernel has made some. They are lost where it makes none in so many
    /// turns.
    fn put_waiting(&mut self, time: u64) -> io::Result<()> {
        for device in 0..self.full.len() {
            let before = self.full[device].waiting.len();
            while let Some(arrival) = self.full[device].waiting.pop_front() {
                if !self.put(&arrival, time)? {
                    self.full[device].waiting.push_front(arrival);
                    break;
                }
            }
            let full = &mut self.full[device];
            if full.waiting.is_empty() {
                continue;
            }
            full.in_vain += 1;
            if full.waiting.len() < before {
                self.call(device, time);
            } else if full.in_vain >= TURNS_IN_VAIN {
                full.takes_nothing = true;
                for lost in std::mem::take(&mut full.waiting) {
                    self.refuse(&lost, time);
                }
            }
        }
        Ok(())
    }

    pub fn somebody_waits_for_room(&self) -> bool {
        self.full.iter().any(|full| !full.waiting.is_empty())
    }

    /// Call the kernel: it has a turn at `time`, with which it is told that the device has input.
    fn call(&mut self, device: usize, time: u64) {
        self.calls |= 1 << device;
        self.request = Some(time);
    }

    /// At `now` a port has a carrier, or none. Its kernel is told with a turn at that moment.
    pub fn set_carrier(&mut self, port: Inlet, has_carrier: bool, now: u64) {
        if self.devices[port.device].set_carrier(port.tag, has_carrier) && !self.is_new() {
            self.changed |= 1 << port.device;
            self.request = Some(self.request.map_or(now, |request| request.min(now)));
        }
    }

    /// Put frames that come before `end`, and before anything else does, into the kernel's buffers when its turn begins. The
    /// kernel looks at each when its time has come. Not where frames wait for a modelled processor: when they come depends
    /// then on what the kernel sends meanwhile.
    pub fn put_ahead(&mut self, end: u64) -> io::Result<()> {
        self.due.clear();
        if self.processor.is_some() {
            return Ok(());
        }
        let end = self.input_at.map_or(end, |at| at.min(end));
        while let Some(Reverse(first)) = self.arrivals.peek().filter(|first| first.0.time < end) {
            if self.due.len() == NOTES {
                break;
            }
            let rings = &mut self.devices[first.device].rings;
            let Some(index) = rings.put_ahead(&first.as_carried())? else {
                break;
            };
            let Some(Reverse(first)) = self.arrivals.pop() else {
                break;
            };
            self.enter(&first, first.time);
            self.due.push(Note {
                time: first.time,
                device: first.device,
                index,
            });
        }
        Ok(())
    }

    /// Let the kernel see the frames of its last turn that it has not taken, since it had its interrupts off. It is called for
    /// them with its next turn.
    pub fn publish_untaken(&mut self) -> io::Result<()> {
        for note in &self.due[self.calendar.taken().min(self.due.len())..] {
            self.devices[note.device].rings.publish()?;
            self.calls |= 1 << note.device;
        }
        self.due.clear();
        Ok(())
    }
}
