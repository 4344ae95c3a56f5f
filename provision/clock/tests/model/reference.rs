//! The lab as its documentation says it is, one event after the other in the order of time: no windows, nothing side by
//! side, nothing told ahead. Of the clock's own code it has what a link does to a frame (wire.rs), and nothing else.

use std::collections::{BTreeMap, HashMap};

use crate::script::{Entry, Frame, Script};
use crate::wire::{Counts, Settings, Wire};

/// How many frames a port's buffers in the kernel hold.
const ROOM: usize = 256;
/// As many frames may wait for a modelled processor, each as long as its header takes.
const BACKLOG_FRAMES: u64 = 1000;

/// (host, port) that sent a frame, and the how manieth of that port's it is that arrives.
type Origin = (usize, usize, u64);

#[derive(Clone, Copy)]
pub struct Processor {
    pub frame_ns: u64,
    pub byte_ns: f64,
}

struct Arrival {
    port: usize,
    frame: Vec<u8>,
    processed: bool,
}

pub struct Host {
    script: Script,
    processor: Option<Processor>,
    processor_free: u64,
    arrivals: BTreeMap<(u64, Origin), Arrival>,
    /// How far its own time is behind the lab's, since it was paused for so long.
    behind: u64,
    paused_at: Option<u64>,
    resumed_at: Option<u64>,
}

impl Host {
    pub fn new(script: Script, processor: Option<Processor>) -> Host {
        Host {
            script,
            processor,
            processor_free: 0,
            arrivals: BTreeMap::new(),
            behind: 0,
            paused_at: None,
            resumed_at: None,
        }
    }

    fn next(&self) -> Option<u64> {
        if self.paused_at.is_some() {
            return None;
        }
        let arrival = self.arrivals.keys().next().map(|(time, _)| *time);
        let timer = self.script.timer.map(|timer| timer + self.behind);
        arrival.into_iter().chain(timer).min()
    }

    /// When a frame has been processed that comes at `time`; None if too many wait.
    fn process(&mut self, time: u64, bytes: usize) -> Option<u64> {
        let Some(Processor { frame_ns, byte_ns }) = self.processor else {
            return Some(time);
        };
        let start = self.processor_free.max(time);
        if start - time > BACKLOG_FRAMES * frame_ns.max(1) {
            return None;
        }
        self.processor_free = start + frame_ns + (byte_ns * bytes as f64).round() as u64;
        Some(self.processor_free)
    }
}

struct Port {
    wire: Wire,
    peer: (usize, usize),
}

pub struct Lab {
    /// None: its power is off.
    hosts: Vec<Option<Host>>,
    ports: Vec<Vec<Port>>,
    /// What has happened on each host in the lives that it has behind it.
    logs: Vec<Vec<Entry>>,
}

impl Lab {
    /// `ports`: of each host the ports in their order, what each sends into and where that leads.
    pub fn new(hosts: Vec<Host>, ports: &[Vec<(Settings, (usize, usize))>]) -> Lab {
        let port = |(settings, peer): &(Settings, (usize, usize))| Port {
            wire: Wire::new(settings.clone()),
            peer: *peer,
        };
        let logs = ports.iter().map(|_| Vec::new()).collect();
        let ports = ports.iter().map(|of| of.iter().map(port).collect());
        Lab {
            hosts: hosts.into_iter().map(Some).collect(),
            ports: ports.collect(),
            logs,
        }
    }

    /// All that happens before `end`.
    pub fn run_until(&mut self, end: u64) {
        loop {
            let next = |index: usize| Some((self.hosts[index].as_ref()?.next()?, index));
            let soonest = (0..self.hosts.len()).filter_map(next).min();
            let Some((time, index)) = soonest.filter(|(time, _)| *time < end) else {
                return;
            };
            self.happens(index, time);
        }
    }

    pub fn pause(&mut self, index: usize, now: u64) {
        self.up(index).paused_at = Some(now);
    }

    /// What is on its way to it is lost.
    pub fn kill(&mut self, index: usize) {
        let host = self.hosts[index].take().expect("it was up");
        self.logs[index].extend(host.script.log);
    }

    pub fn start(&mut self, index: usize, host: Host) {
        self.hosts[index] = Some(host);
    }

    /// What has happened on each host.
    pub fn into_logs(mut self) -> Vec<Vec<Entry>> {
        for index in 0..self.hosts.len() {
            if self.hosts[index].is_some() {
                self.kill(index);
            }
        }
        self.logs
    }

    fn up(&mut self, index: usize) -> &mut Host {
        self.hosts[index].as_mut().expect("it is up")
    }

    /// What has come meanwhile comes now; what it had still to wait for it has still to wait for.
    pub fn resume(&mut self, index: usize, now: u64) {
        let host = self.up(index);
        host.behind += now - host.paused_at.take().expect("it was paused");
        host.processor_free = host.processor_free.max(now);
        host.resumed_at = Some(now);
        let came = std::mem::take(&mut host.arrivals);
        host.arrivals = came
            .into_iter()
            .map(|((time, origin), arrival)| ((time.max(now), origin), arrival))
            .collect();
    }

    /// What has not left the wire yet arrives by the new settings.
    pub fn set(&mut self, host: usize, port: usize, now: u64, settings: Settings) {
        let Port { wire, peer, .. } = &mut self.ports[host][port];
        let mut arriving = HashMap::new();
        let first = wire.first_changed(now, &settings);
        let there = self.hosts[peer.0].as_mut();
        if let (Some(first), Some(there)) = (first, there) {
            let changed =
                |origin: &Origin| (origin.0, origin.1) == (host, port) && origin.2 >= first;
            for (at, arrival) in std::mem::take(&mut there.arrivals) {
                if changed(&at.1) {
                    arriving.insert(at.1 .2, arrival.frame);
                } else {
                    there.arrivals.insert(at, arrival);
                }
            }
        }
        for (number, time, frame) in wire.set(now, settings, arriving) {
            let arrival = Arrival {
                port: peer.1,
                frame,
                processed: false,
            };
            if let Some(there) = &mut self.hosts[peer.0] {
                there.arrivals.insert((time, (host, port, number)), arrival);
            }
        }
    }

    /// Of each port, in the order of hosts and ports, what has come of its frames, and how many bytes wait at `now`.
    pub fn wires(&self, now: u64) -> Vec<(Counts, u64)> {
        let ports = self.ports.iter().flatten();
        ports
            .map(|port| (port.wire.counts(), port.wire.queued(now)))
            .collect()
    }

    /// Everything on that host at that time.
    fn happens(&mut self, index: usize, time: u64) {
        let inbox = self.comes(index, time);
        let host = self.up(index);
        let own = time - host.behind;
        for (port, frame) in host.script.act(own, inbox) {
            self.leaves(index, port, time, frame);
        }
    }

    fn comes(&mut self, index: usize, time: u64) -> Vec<Frame> {
        let mut inbox: Vec<Frame> = Vec::new();
        loop {
            let host = self.up(index);
            let first = host.arrivals.first_entry();
            let Some(first) = first.filter(|entry| entry.key().0 <= time) else {
                return inbox;
            };
            let ((_, origin), mut arrival) = first.remove_entry();
            let drop = if host.processor.is_some() && !arrival.processed {
                match host.process(time, arrival.frame.len()) {
                    Some(done) => {
                        arrival.processed = true;
                        host.arrivals.insert((done.max(time + 1), origin), arrival);
                        false
                    }
                    None => true,
                }
            } else if inbox.iter().filter(|one| one.0 == arrival.port).count() == ROOM {
                assert_eq!(host.resumed_at, Some(time), "more than the model is for");
                true
            } else {
                inbox.push((arrival.port, arrival.frame));
                false
            };
            if drop {
                self.ports[origin.0][origin.1].wire.drop_at_end();
            }
        }
    }

    fn leaves(&mut self, index: usize, port: usize, time: u64, frame: Vec<u8>) {
        let leaves = self.up(index).process(time, frame.len());
        let from = &mut self.ports[index][port];
        let Some(leaves) = leaves else {
            return from.wire.drop_at_end();
        };
        let mut number = from.wire.numbered();
        for (arrives, frame) in from.wire.carry(leaves, frame).into_iter().flatten() {
            assert!(arrives > time, "it arrives later than it was sent");
            number += 1;
            let (peer, port_there) = from.peer;
            let arrival = Arrival {
                port: port_there,
                frame,
                processed: false,
            };
            let origin = (index, port, number);
            if let Some(peer) = &mut self.hosts[peer] {
                peer.arrivals.insert((arrives, origin), arrival);
            }
        }
    }
}
