//! The lab's links: where each port leads, what its wire does to frames, and which frames are under way.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use crate::course::Fate;
use crate::delivery::Arrival;
use crate::host::Host;
use crate::orders::{PortSettings, Topology, WireState};
use crate::trunk::{self, Inlet};
use crate::under_way::UnderWay;
use crate::wire::Wire;

/// The shortest time between hosts of a lab without links, where no window has to end for another host's sake: 1 s.
const WITHOUT_LINKS_NS: u64 = 1_000_000_000;

struct Port {
    wire: Wire,
    /// Where its frames come from, and where they come to a kernel.
    own: Inlet,
    to: Inlet,
    under_way: UnderWay,
}

impl Port {
    /// Let a frame arrive at the other end. False if too many are under way.
    fn deliver(
        &mut self,
        hosts: &mut [Option<Host>],
        origin: (usize, usize, u64),
        time: u64,
        frame: Vec<u8>,
    ) -> bool {
        let Some(peer) = &mut hosts[self.to.kernel] else {
            return true;
        };
        let Some(held) = self.under_way.hold(frame.len(), &self.wire) else {
            self.wire.forget(origin.2);
            return false;
        };
        peer.expect(Arrival {
            time,
            origin,
            device: self.to.device,
            tag: self.to.tag,
            processed: false,
            frame,
            _held: held,
        });
        true
    }
}

pub struct Links {
    /// By host, then by port.
    ports: Vec<Vec<Port>>,
    /// By host, whether one of its frames was dropped since too many were under way.
    dropped: Vec<bool>,
    least_ns: u64,
}

impl Links {
    /// An error for a port without a link, without settings, or with settings that no wire can have.
    pub fn new(topology: &Topology) -> io::Result<Links> {
        let mut links = Links {
            ports: ports_of(topology)?,
            dropped: vec![false; topology.hosts.len()],
            least_ns: 0,
        };
        links.least_ns = links.find_least_ns();
        Ok(links)
    }

    /// The least time, in nanoseconds, that any frame takes to another host.
    pub fn least_ns(&self) -> u64 {
        self.least_ns
    }

    fn find_least_ns(&self) -> u64 {
        let ports = self.ports.iter().flatten();
        ports
            .map(|port| port.wire.least_ns())
            .min()
            .unwrap_or(WITHOUT_LINKS_NS)
    }

    /// Replace the settings of some wires at `now`, when no window is open. An error for a port that does not exist, and for
    /// settings that no wire can have; then nothing is changed.
    pub fn set(
        &mut self,
        hosts: &mut [Option<Host>],
        now: u64,
        wires: Vec<PortSettings>,
    ) -> Result<(), String> {
        let exists = |one: &PortSettings| {
            let ports = self.ports.get(one.host);
            ports.is_some_and(|ports| one.port < ports.len())
        };
        if let Some(other) = wires.iter().find(|one| !exists(one)) {
            return Err(format!("host {} has no port {}", other.host, other.port));
        }
        for one in &wires {
            one.wire.check()?;
        }
        for one in wires {
            self.set_one(hosts, now, one);
        }
        self.least_ns = self.find_least_ns();
        Ok(())
    }

    /// Replace a wire's settings. What has not left it yet arrives by the new ones.
    fn set_one(&mut self, hosts: &mut [Option<Host>], now: u64, one: PortSettings) {
        let from = (one.host, one.port);
        let port = &mut self.ports[from.0][from.1];
        let first = port.wire.first_changed(now, &one.wire);
        let arriving = match (first, &mut hosts[port.to.kernel]) {
            (Some(first), Some(peer)) => peer.take_back(from, first),
            _ => HashMap::new(),
        };
        let has_carrier = one.wire.no_carrier == 0;
        for (number, time, frame) in port.wire.set(now, one.wire, arriving) {
            port.deliver(hosts, (from.0, from.1, number), time, frame);
        }
        let own = port.own;
        if let Some(host) = &mut hosts[own.kernel] {
            host.set_carrier(own, has_carrier, now);
        }
    }

    /// Let a host's cards have their carriers, or none, as their wires are set. Its kernel has just been started.
    pub fn set_carriers(&self, index: usize, host: &mut Host, now: u64) {
        let ports = self.ports.iter().flatten();
        for Port { wire, own, .. } in ports.filter(|port| port.own.kernel == index) {
            host.set_carrier(*own, wire.settings().no_carrier == 0, now);
        }
    }

    /// Replace the links of `before` by those of `after`. A port that both have, by its host's number and its MAC address,
    /// keeps its wire with its settings, its random numbers and the frames that are under way on it.
    pub fn replace(&mut self, before: &Topology, after: &Topology) -> io::Result<()> {
        let mut ports = ports_of(after)?;
        let hosts = before.hosts.iter().zip(std::mem::take(&mut self.ports));
        let mut kept: HashMap<(usize, &str), Port> = HashMap::new();
        for (index, (host, ports)) in hosts.enumerate() {
            for (mac, port) in host.ports.iter().zip(ports) {
                kept.insert((index, mac), port);
            }
        }
        for (index, host) in after.hosts.iter().enumerate() {
            for (port, mac) in ports[index].iter_mut().zip(&host.ports) {
                if let Some(before) = kept.remove(&(index, mac.as_str())) {
                    *port = Port {
                        own: port.own,
                        to: port.to,
                        ..before
                    };
                }
            }
        }
        self.ports = ports;
        self.dropped.resize(after.hosts.len(), false);
        self.least_ns = self.find_least_ns();
        Ok(())
    }

    /// The settings and counts of each wire, and the bytes that wait in front of its rate at `now`.
    pub fn states(&self, now: u64) -> Vec<WireState> {
        let mut states = Vec::new();
        for (host, ports) in self.ports.iter().enumerate() {
            for (port, Port { wire, .. }) in ports.iter().enumerate() {
                let settings = PortSettings {
                    host,
                    port,
                    wire: wire.settings().clone(),
                };
                states.push(WireState {
                    settings,
                    counts: wire.counts(),
                    queued: wire.queued(now),
                });
            }
        }
        states
    }

    /// Count a frame that `from`, a (host, port), sent, and that found no room at the host at either end.
    pub fn count_overrun(&mut self, (host, port): (usize, usize)) {
        self.ports[host][port].wire.drop_at_end();
    }

    /// Send a frame that leaves `from`, a (host, port), at `leaves`. It arrives at `earliest` or later.
    ///
    /// Returns what became of it, and whether it is the host's first frame that is dropped since too many are under way.
    pub fn send(
        &mut self,
        hosts: &mut [Option<Host>],
        from: (usize, usize),
        leaves: u64,
        earliest: u64,
        frame: Vec<u8>,
    ) -> (Fate, bool) {
        let port = &mut self.ports[from.0][from.1];
        let mut first_drop = false;
        let dropped = port.wire.counts().dropped;
        let mut number = port.wire.numbered();
        port.wire.settle(earliest);
        let arrivals = port.wire.carry(leaves, frame);
        let arrives = |each: &Option<(u64, Vec<u8>)>| each.as_ref().map_or(0, |(time, _)| *time);
        let fate = Fate {
            leaves,
            arrives: [arrives(&arrivals[0]), arrives(&arrivals[1])],
            dropped: port.wire.counts().dropped > dropped,
            drawn: port.wire.drawn(),
        };
        for (time, frame) in arrivals.into_iter().flatten() {
            number += 1;
            // Only a link that has just been made shorter could deliver into the window in which the frame was sent.
            let time = time.max(earliest);
            if !port.deliver(hosts, (from.0, from.1, number), time, frame) {
                first_drop |= !std::mem::replace(&mut self.dropped[from.0], true);
            }
        }
        (fate, first_drop)
    }
}

fn ports_of(topology: &Topology) -> io::Result<Vec<Vec<Port>>> {
    let mut peers = HashMap::new();
    for [first, second] in &topology.links {
        peers.insert(*first, *second);
        peers.insert(*second, *first);
    }
    let wires = topology.wires.iter();
    let mut settings: HashMap<_, _> = wires
        .map(|one| ((one.host, one.port), one.wire.clone()))
        .collect();
    let exists = |(host, port): (usize, usize)| {
        let spec = topology.hosts.get(host);
        spec.is_some_and(|spec| port < spec.ports.len())
    };
    let inlets = trunk::inlets(topology)?;
    let mut all = Vec::new();
    for (host, spec) in topology.hosts.iter().enumerate() {
        let mut ports = Vec::new();
        let of_host: Rc<Cell<usize>> = Rc::default();
        for port in 0..spec.ports.len() {
            let missing =
                || io::Error::other(format!("port {port} of {} leads nowhere", spec.name));
            let peer = *peers
                .get(&(host, port))
                .filter(|peer| exists(**peer))
                .ok_or_else(missing)?;
            let settings = settings.remove(&(host, port)).ok_or_else(missing)?;
            settings.check().map_err(io::Error::other)?;
            let wire = Wire::new(settings);
            ports.push(Port {
                wire,
                own: inlets[host][port],
                to: inlets[peer.0][peer.1],
                under_way: UnderWay::of_port(&of_host),
            });
        }
        all.push(ports);
    }
    Ok(all)
}
