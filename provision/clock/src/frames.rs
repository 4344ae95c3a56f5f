//! The heads of the frames on a host's line (tools/minigts/providers/agent/wire.py), found as the bytes pass by.

pub const HELLO: &[u8] = b"\x00minigts agent 1\x00";
pub const HEAD: usize = 9;

pub const RUN: u8 = 1;
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
    fn decode(bytes: &[u8]) -> Head {
        Head {
            channel: u32::from_be_bytes(bytes[0..4].try_into().unwrap()),
            kind: bytes[4],
            length: u32::from_be_bytes(bytes[5..9].try_into().unwrap()) as usize,
        }
    }
}

/// What a host says: noise up to the greeting, then frames.
#[derive(Default)]
pub struct FromHost {
    greeted: bool,
    seen: Vec<u8>,
}

impl FromHost {
    pub fn greeted(&self) -> bool {
        self.greeted
    }

    /// The frames that end in `bytes`, which follow what came before.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Head> {
        let mut ended = Vec::new();
        self.seen.extend_from_slice(bytes);
        if !self.greeted {
            let Some(at) = self.seen.windows(HELLO.len()).position(|part| part == HELLO) else {
                let keep = self.seen.len().min(HELLO.len());
                self.seen.drain(..self.seen.len() - keep);
                return ended;
            };
            self.seen.drain(..at + HELLO.len());
            self.greeted = true;
        }
        while self.seen.len() >= HEAD {
            let head = Head::decode(&self.seen);
            if self.seen.len() < HEAD + head.length {
                break;
            }
            self.seen.drain(..HEAD + head.length);
            ended.push(head);
        }
        ended
    }
}

/// What clients say to a host: whole frames, each with its bytes.
#[derive(Default)]
pub struct ToHost {
    seen: Vec<u8>,
}

impl ToHost {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(channel: u32, kind: u8, payload: &[u8]) -> Vec<u8> {
        [&channel.to_be_bytes()[..], &[kind], &(payload.len() as u32).to_be_bytes(), payload].concat()
    }

    #[test]
    fn frames_are_found_whatever_the_pieces() {
        let spoken = [b"noise".as_slice(), HELLO, &frame(1, STDOUT, b"hello"), &frame(1, EXIT, b"{}")].concat();
        for size in 1..spoken.len() {
            let mut host = FromHost::default();
            let heads: Vec<Head> = spoken.chunks(size).flat_map(|piece| host.feed(piece)).collect();
            assert!(host.greeted());
            assert_eq!(heads.iter().map(|head| head.kind).collect::<Vec<_>>(), [STDOUT, EXIT]);
        }
    }

    #[test]
    fn what_clients_say_is_kept_whole() {
        let spoken = [frame(3, RUN, b"{}"), frame(3, WAIT, b"")].concat();
        for size in 1..=spoken.len() {
            let mut line = ToHost::default();
            let frames: Vec<_> = spoken.chunks(size).flat_map(|piece| line.feed(piece)).collect();
            assert_eq!(frames.len(), 2);
            assert_eq!(frames.concat_bytes(), spoken);
        }
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
