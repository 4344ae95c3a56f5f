//! A trunk: one card of a kernel that several hosts share, for all of their ports.
//!
//! Each port is an IEEE 802.1Q VLAN of the card, by a tag that the supervisor has chosen. A host that shares a kernel has a
//! number, wires and a course as any other, and no kernel of its own: frames of its ports come from the trunk of the kernel that
//! it is *within*, and go there. Links and what is entered know nothing of tags.

use std::collections::{HashMap, HashSet};
use std::io;

use crate::course;
use crate::orders::Topology;
use crate::storm::Watch;

/// Where the Ethernet header's type, or a tag, begins.
const TYPE_AT: usize = 12;
/// What a tag begins with.
const TAGGED: [u8; 2] = [0x81, 0x00];
/// A tag's length, in bytes.
pub const TAG: usize = 4;
/// The highest tag; 0 and 4095 mean no VLAN.
pub const HIGHEST_TAG: u16 = 4094;
/// The bytes that a card's settings have for a bit of each tag.
pub const TAG_BYTES: usize = 512;

/// Where a port's frames come to a kernel, and come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlet {
    /// The number of the host whose kernel it is.
    pub kernel: usize,
    /// The device by which it comes: its port's number and 1, or a trunk.
    pub device: usize,
    /// Its tag on a trunk; None: the port has a card of its own.
    pub tag: Option<u16>,
}

/// A trunk's own address, of those that are administered locally. No frame is for it.
pub const TRUNK_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
/// The device of each trunk.
pub const TRUNK: usize = 1;

/// By host, then by port, where its frames come to a kernel. An error for a host that is within one without a kernel, and for
/// tags that are none, or that two ports have.
pub fn inlets(topology: &Topology) -> io::Result<Vec<Vec<Inlet>>> {
    let mut taken = HashSet::new();
    let mut all = Vec::new();
    for (index, host) in topology.hosts.iter().enumerate() {
        let Some(within) = &host.within else {
            let own = |port| Inlet {
                kernel: index,
                device: port + 1,
                tag: None,
            };
            all.push((0..host.ports.len()).map(own).collect());
            continue;
        };
        let wrong = |what: &str| io::Error::other(format!("{}: {what}", host.name));
        let kernel = within.kernel;
        if topology.hosts.get(kernel).is_none_or(|one| !one.trunk) {
            return Err(wrong("it is within a host that has no trunk"));
        }
        if within.tags.len() != host.ports.len() {
            return Err(wrong("each of its ports needs a tag"));
        }
        let mut own = Vec::new();
        for tag in &within.tags {
            let is_one = (1..=HIGHEST_TAG).contains(tag);
            if !is_one || !taken.insert((kernel, *tag)) {
                return Err(wrong("its tags are none, or another port's"));
            }
            own.push(Inlet {
                kernel,
                device: TRUNK,
                tag: Some(*tag),
            });
        }
        all.push(own);
    }
    Ok(all)
}

/// A port of a host that shares a kernel.
pub struct Seat {
    /// The host and its port.
    pub of: (usize, usize),
    pub course: course::Shared,
}

/// The hosts that share a kernel, as that kernel's host knows them.
#[derive(Default)]
pub struct Seats {
    by_tag: HashMap<u16, Seat>,
    /// By host, what it knows of frames that go round.
    watches: HashMap<usize, Watch>,
}

impl Seats {
    pub fn add(&mut self, tag: u16, seat: Seat, watch: impl FnOnce() -> Watch) {
        self.watches.entry(seat.of.0).or_insert_with(watch);
        self.by_tag.insert(tag, seat);
    }

    /// The port with that tag, and what its host knows of storms.
    pub fn of(&mut self, tag: u16) -> Option<(&Seat, &mut Watch)> {
        let seat = self.by_tag.get(&tag)?;
        let watch = self.watches.get_mut(&seat.of.0)?;
        Some((seat, watch))
    }
}

/// A frame as a trunk carries it.
pub fn tagged(frame: &[u8], tag: u16) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(TYPE_AT.min(frame.len()));
    [addresses, &TAGGED, &tag.to_be_bytes(), rest].concat()
}

/// The tag of a frame that a trunk has carried, and the frame without it. None for one without a tag, which is no port's.
pub fn untagged(mut frame: Vec<u8>) -> Option<(u16, Vec<u8>)> {
    if frame.len() < TYPE_AT + TAG + 2 || frame[TYPE_AT..TYPE_AT + 2] != TAGGED {
        return None;
    }
    let word = u16::from_be_bytes([frame[TYPE_AT + 2], frame[TYPE_AT + 3]]);
    frame.drain(TYPE_AT..TYPE_AT + TAG);
    // The upper bits are the frame's priority.
    Some((word & 0xfff, frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: &[u8] = b"to_me_from_y\x08\x00some bytes";

    #[test]
    fn a_tag_comes_off_as_it_was_put_on() {
        for tag in [1, 17, HIGHEST_TAG] {
            let (found, frame) = untagged(tagged(FRAME, tag)).unwrap();
            assert_eq!((found, frame.as_slice()), (tag, FRAME));
        }
    }

    #[test]
    fn a_frame_within_a_vlan_of_a_hosts_own_keeps_that_tag() {
        let own = tagged(FRAME, 5);
        assert_eq!(untagged(tagged(&own, 9)), Some((9, own)));
    }

    #[test]
    fn a_priority_is_no_part_of_the_tag() {
        let mut frame = tagged(FRAME, 7);
        frame[TYPE_AT + 2] |= 0xe0;
        assert_eq!(untagged(frame).unwrap().0, 7);
    }

    #[test]
    fn a_frame_without_a_tag_is_no_ports() {
        assert_eq!(untagged(FRAME.to_vec()), None);
        assert_eq!(untagged(vec![0x81; 14]), None);
    }

    fn topology(hosts: &str) -> Topology {
        serde_json::from_str(&format!(
            r#"{{"hosts": {hosts}, "links": [], "wires": []}}"#
        ))
        .unwrap()
    }

    #[test]
    fn a_port_comes_in_by_its_own_card_or_by_a_tag() {
        let found = inlets(&topology(
            r#"[{"name": "a", "ports": ["m", "n"]}, {"name": "k", "ports": [], "trunk": true},
                {"name": "b", "ports": ["o"], "within": {"kernel": 1, "tags": [3]}}]"#,
        ));
        let found = found.unwrap();
        let (kernel, device) = (0, 2);
        assert_eq!(
            found[0][1],
            Inlet {
                kernel,
                device,
                tag: None
            }
        );
        let (kernel, device, tag) = (1, TRUNK, Some(3));
        assert_eq!(
            found[2],
            [Inlet {
                kernel,
                device,
                tag
            }]
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let trunk = r#"{"name": "k", "ports": [], "trunk": true}"#;
        for host in [
            r#"{"name": "b", "ports": ["o"], "within": {"kernel": 1, "tags": [3]}}"#,
            r#"{"name": "b", "ports": ["o"], "within": {"kernel": 9, "tags": [3]}}"#,
            r#"{"name": "b", "ports": ["o"], "within": {"kernel": 0, "tags": []}}"#,
            r#"{"name": "b", "ports": ["o"], "within": {"kernel": 0, "tags": [4095]}}"#,
            r#"{"name": "b", "ports": ["o", "p"], "within": {"kernel": 0, "tags": [3, 3]}}"#,
        ] {
            assert!(
                inlets(&topology(&format!("[{trunk}, {host}]"))).is_err(),
                "{host}"
            );
        }
    }
}
