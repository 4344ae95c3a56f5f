//! The frames of tools/minigts/providers/agent/wire.py: channel (4 bytes), kind (1) and length (4) in network order, then the payload.

/// With these bytes the agent greets; frames follow.
pub const HELLO: &[u8] = b"\x00minigts agent 1\x00";
// Kinds of frames.
pub const RUN: u8 = 1;
pub const INPUT: u8 = 2;
pub const KILL: u8 = 3;
pub const RESIZE: u8 = 4;
pub const STDOUT: u8 = 5;
pub const STDERR: u8 = 6;
pub const EXIT: u8 = 7;
pub const TAKEN: u8 = 8;
/// RUN for a light host.
pub const RUN_WITHIN: u8 = 16;
/// How many bytes of output a frame has at the most.
pub const CHUNK: usize = 16384;

const HEADER: usize = 9;

/// The parts of a RUN_WITHIN: a light host's name, behind a byte with its length, and a RUN's payload.
pub fn named(payload: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = payload.split_first() else {
        return (b"", b"");
    };
    rest.split_at_checked(usize::from(*length))
        .unwrap_or((b"", b""))
}

#[derive(Debug, PartialEq)]
pub struct Frame {
    pub channel: u32,
    pub kind: u8,
    pub payload: Vec<u8>,
}

/// A frame in bytes.
pub fn encoded(channel: u32, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend(channel.to_be_bytes());
    bytes.push(kind);
    bytes.extend((payload.len() as u32).to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Finds the frames in a stream of bytes that comes in pieces of any size.
#[derive(Default)]
pub struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
    /// Take in the next piece. Returns the frames that end in it.
    pub fn feed(&mut self, data: &[u8]) -> Vec<Frame> {
        self.buffer.extend(data);
        let (mut frames, mut read) = (Vec::new(), 0);
        while let Some((frame, size)) = first_of(&self.buffer[read..]) {
            frames.push(frame);
            read += size;
        }
        self.buffer.drain(..read);
        frames
    }
}

fn first_of(bytes: &[u8]) -> Option<(Frame, usize)> {
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    let channel = u32::from_be_bytes(header[..4].try_into().unwrap());
    let length = u32::from_be_bytes(header[5..].try_into().unwrap()) as usize;
    let payload = rest.get(..length)?.to_vec();
    Some((
        Frame {
            channel,
            kind: header[4],
            payload,
        },
        HEADER + length,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_a_light_host_has_its_name_in_front() {
        assert_eq!(named(b"\x02h1{}"), (&b"h1"[..], &b"{}"[..]));
        for none in [&b""[..], b"\x09h1"] {
            assert_eq!(named(none), (&b""[..], &b""[..]));
        }
    }

    #[test]
    fn frames_come_out_of_a_stream_in_pieces_of_any_size() {
        let stream = [
            encoded(1, RUN, b"{}"),
            encoded(0x01020304, INPUT, b""),
            encoded(7, INPUT, &[9; 300]),
        ]
        .concat();
        for size in [1, 2, 8, 9, 10, stream.len()] {
            let mut decoder = Decoder::default();
            let frames: Vec<Frame> = stream
                .chunks(size)
                .flat_map(|piece| decoder.feed(piece))
                .collect();
            let shown: Vec<_> = frames
                .iter()
                .map(|each| (each.channel, each.kind, each.payload.len()))
                .collect();
            assert_eq!(
                shown,
                [(1, RUN, 2), (0x01020304, INPUT, 0), (7, INPUT, 300)]
            );
        }
    }
}
