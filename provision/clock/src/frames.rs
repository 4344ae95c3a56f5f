//! Finds the frames on a host's control line as their bytes pass by (tools/minigts/providers/agent/protocol.py). A frame is a head
//! and its payload.

use std::collections::HashMap;
use std::io;

use crate::calendar::lie;

/// With these bytes an agent greets; frames follow.
pub const HELLO: &[u8] = b"\x00minigts agent 1\x00";
/// The length of a head, in bytes: channel (4), kind (1) and length of the payload (4), in network order.
pub const HEAD: usize = 9;

/// The longest payload that is taken from a host, in bytes. An agent's are no longer than 16 KiB (provision/agent/src/wire.rs).
pub const LONGEST_FROM_AGENT: usize = 1 << 16;

// Kinds of frames. WAIT and PACE are for the clock alone, and no agent gets them.
pub const RUN: u8 = 1;
pub const RUN_WITHIN: u8 = 16;
pub const KILL: u8 = 3;
pub const STDOUT: u8 = 5;
pub const STDERR: u8 = 6;
pub const EXIT: u8 = 7;
pub const WAIT: u8 = 9;
pub const PACE: u8 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub channel: u32,
    pub kind: u8,
    pub length: usize,
}

impl Head {
    fn encode(&self) -> Vec<u8> {
        let length = (self.length as u32).to_be_bytes();
        [&self.channel.to_be_bytes()[..], &[self.kind], &length].concat()
    }

    fn decode(bytes: &[u8]) -> Head {
        Head {
            channel: u32::from_be_bytes(bytes[0..4].try_into().unwrap()),
            kind: bytes[4],
            length: u32::from_be_bytes(bytes[5..9].try_into().unwrap()) as usize,
        }
    }
}

/// What a host's console puts out: the kernel's noise up to the agent's greeting, then the agent's frames. No more of it is kept
/// than a head.
#[derive(Default)]
pub struct FromAgent {
    greeted: bool,
    /// The end of the noise, or the beginning of a head.
    seen: Vec<u8>,
    /// The head of the frame that has begun and not ended, and how many bytes of its payload are still to come.
    within: Option<(Head, usize)>,
}

impl FromAgent {
    /// Whether the agent has greeted.
    pub fn greeted(&self) -> bool {
        self.greeted
    }

    /// What a reader has to have read who hears the next bytes only: the beginning of a head, or the head of a frame for
    /// nobody that ends where the frame does that has begun.
    pub fn begun(&self) -> Vec<u8> {
        match &self.within {
            None => self.seen.clone(),
            Some((_, left)) => {
                let head = Head {
                    channel: u32::MAX,
                    kind: STDOUT,
                    length: *left,
                };
                head.encode()
            }
        }
    }

    /// Take in the next bytes of the output. Returns the heads of the frames that end in them; an error for a frame that no
    /// agent sends.
    pub fn feed(&mut self, mut bytes: &[u8]) -> io::Result<Vec<Head>> {
        let mut ended = Vec::new();
        if !self.greeted {
            let Some(rest) = self.skip_noise(bytes) else {
                return Ok(ended);
            };
            bytes = rest;
        }
        while !bytes.is_empty() {
            let (head, left) = match self.within.take() {
                Some(within) => within,
                None => {
                    let (more, rest) = bytes.split_at(bytes.len().min(HEAD - self.seen.len()));
                    self.seen.extend_from_slice(more);
                    bytes = rest;
                    if self.seen.len() < HEAD {
                        break;
                    }
                    let head = Head::decode(&self.seen);
                    self.seen.clear();
                    if head.length > LONGEST_FROM_AGENT {
                        return Err(lie(format!(
                            "it began a frame of {} bytes on its control line",
                            head.length
                        )));
                    }
                    (head, head.length)
                }
            };
            let count = left.min(bytes.len());
            bytes = &bytes[count..];
            if count == left {
                ended.push(head);
            } else {
                self.within = Some((head, left - count));
            }
        }
        Ok(ended)
    }

    /// The bytes that follow the greeting; None as long as the greeting has not come whole.
    fn skip_noise<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let before = self.seen.len();
        self.seen.extend_from_slice(bytes);
        let Some(at) = self
            .seen
            .windows(HELLO.len())
            .position(|part| part == HELLO)
        else {
            let keep = self.seen.len().min(HELLO.len());
            self.seen.drain(..self.seen.len() - keep);
            return None;
        };
        self.seen = Vec::new();
        self.greeted = true;
        Some(&bytes[at + HELLO.len() - before..])
    }
}

/// What clients send to a host: frames.
#[derive(Default)]
pub struct ToAgent {
    seen: Vec<u8>,
}

impl ToAgent {
    /// Take in the next bytes. Returns each frame that ends in them: its head, and all its bytes with the head's.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<(Head, Vec<u8>)> {
        self.seen.extend_from_slice(bytes);
        let mut frames = Vec::new();
        let mut at = 0;
        while self.seen.len() - at >= HEAD {
            let head = Head::decode(&self.seen[at..]);
            if self.seen.len() - at < HEAD + head.length {
                break;
            }
            frames.push((head, self.seen[at..at + HEAD + head.length].to_vec()));
            at += HEAD + head.length;
        }
        self.seen.drain(..at);
        frames
    }
}

/// What clients have sent to a host and its console has not got yet.
///
/// What is sent at one moment reaches the host in the order of the clients' turns, whichever client was faster: the order in
/// which programs start decides which of them draws which of their kernel's random numbers.
#[derive(Default)]
pub struct Input {
    /// The frames that have come since time last passed, each with its channel.
    held: Vec<(u32, Vec<u8>)>,
    /// By channel, the turn of the client that waits for it.
    turns: HashMap<u32, u64>,
    /// What the console gets next.
    released: Vec<u8>,
}

impl Input {
    pub fn hold(&mut self, channel: u32, frame: Vec<u8>) {
        self.held.push((channel, frame));
    }

    /// The client with that turn waits for the channel.
    pub fn belongs(&mut self, channel: u32, turn: u64) {
        self.turns.insert(channel, turn);
    }

    /// Time passes: nothing more is sent at this moment. Frames of one channel stay in their order, and so do those of clients
    /// that act alone, which come first.
    pub fn release(&mut self) {
        let turns = &self.turns;
        self.held
            .sort_by_key(|(channel, _)| turns.get(channel).copied().unwrap_or(0));
        self.turns.clear();
        for (_, frame) in self.held.drain(..) {
            self.released.extend(frame);
        }
    }

    /// The bytes that the console may have; it takes as many as it has room for, by `taken`.
    pub fn released(&self) -> &[u8] {
        &self.released
    }

    pub fn taken(&mut self, count: usize) {
        self.released.drain(..count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(channel: u32, kind: u8, payload: &[u8]) -> Vec<u8> {
        [
            &channel.to_be_bytes()[..],
            &[kind],
            &(payload.len() as u32).to_be_bytes(),
            payload,
        ]
        .concat()
    }

    #[test]
    fn frames_are_found_whatever_the_pieces() {
        let spoken = [
            b"noise".as_slice(),
            HELLO,
            &frame(1, STDOUT, b"hello"),
            &frame(1, EXIT, b"{}"),
        ]
        .concat();
        for size in 1..spoken.len() {
            let mut host = FromAgent::default();
            let heads: Vec<Head> = spoken
                .chunks(size)
                .flat_map(|piece| host.feed(piece).unwrap())
                .collect();
            assert!(host.greeted());
            assert_eq!(
                heads.iter().map(|head| head.kind).collect::<Vec<_>>(),
                [STDOUT, EXIT]
            );
        }
    }

    #[test]
    fn who_hears_the_rest_alone_finds_the_frames_that_follow() {
        let spoken = [frame(1, STDOUT, b"hello"), frame(2, EXIT, b"{}")].concat();
        for heard in 1..spoken.len() {
            let mut host = FromAgent::default();
            host.feed(HELLO).unwrap();
            host.feed(&spoken[..heard]).unwrap();
            let mut later = ToAgent::default();
            let rest = [&host.begun()[..], &spoken[heard..]].concat();
            let frames = later.feed(&rest);
            let (head, _) = frames.last().unwrap();
            assert!(head.kind == EXIT || head.channel == u32::MAX);
            assert!(later.seen.is_empty());
        }
    }

    #[test]
    fn a_frame_that_no_agent_sends_is_a_lie_and_none_is_kept() {
        let head =
            |length: u32| [&1u32.to_be_bytes()[..], &[STDOUT], &length.to_be_bytes()].concat();
        let mut host = FromAgent::default();
        host.feed(HELLO).unwrap();
        assert!(host
            .feed(&head(LONGEST_FROM_AGENT as u32))
            .unwrap()
            .is_empty());
        assert!(host.feed(&[0; LONGEST_FROM_AGENT - 1]).unwrap().is_empty());
        assert!(host.seen.capacity() < 100);
        assert_eq!(host.feed(&[0]).unwrap().len(), 1);
        for length in [LONGEST_FROM_AGENT as u32 + 1, u32::MAX] {
            let mut host = FromAgent::default();
            host.feed(HELLO).unwrap();
            assert!(host.feed(&head(length)).is_err());
        }
    }

    #[test]
    fn what_clients_say_is_kept_whole() {
        let spoken = [frame(3, RUN, b"{}"), frame(3, WAIT, b"")].concat();
        for size in 1..=spoken.len() {
            let mut line = ToAgent::default();
            let frames: Vec<_> = spoken
                .chunks(size)
                .flat_map(|piece| line.feed(piece))
                .collect();
            assert_eq!(frames.len(), 2);
            assert_eq!(frames.concat_bytes(), spoken);
        }
    }

    #[test]
    fn what_comes_at_one_moment_is_in_the_order_of_turns() {
        let spoken = [(1, 8, b"second "), (2, 7, b"first  "), (3, 0, b"alone  ")];
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let mut input = Input::default();
            for (channel, turn, text) in order.map(|number: usize| spoken[number]) {
                input.hold(channel, text.to_vec());
                input.hold(channel, b"and more ".to_vec());
                if turn > 0 {
                    input.belongs(channel, turn);
                }
            }
            assert!(input.released().is_empty());
            input.release();
            assert_eq!(
                input.released(),
                b"alone  and more first  and more second and more "
            );
        }
    }

    #[test]
    fn what_comes_later_comes_behind_and_no_more_is_taken_than_there_is_room() {
        let mut input = Input::default();
        input.hold(2, b"late turn ".to_vec());
        input.belongs(2, 9);
        input.release();
        input.hold(1, b"early turn".to_vec());
        input.belongs(1, 1);
        assert_eq!(input.released(), b"late turn ");
        input.taken(5);
        input.release();
        assert_eq!(input.released(), b"turn early turn");
    }

    trait Concat {
        fn concat_bytes(&self) -> Vec<u8>;
    }

    impl Concat for Vec<(Head, Vec<u8>)> {
        fn concat_bytes(&self) -> Vec<u8> {
            self.iter().flat_map(|(_, bytes)| bytes.clone()).collect()
        }
    }
}
