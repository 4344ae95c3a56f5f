//! What is put into a kernel's buffers is in them, and what the kernel puts out is taken as it is, however its memory is cut
//! into buffers.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::MsgFlags;

use crate::device::{Device, Event, Kind};
use crate::for_all;
use crate::kernel::{
    read_with, vhost, write_with, Kernel, Read, Shared, AVAILABLE, BUFFERS, QUEUE, USED,
};
use crate::rings::{Delivery, LONGEST_FRAME, QUEUE_SIZE};
use crate::script::Chance;
use crate::socket::Outbox;

const MEMORY: usize = 4 << 20;
const NET_HEADER: usize = 12;
const WRITABLE: u64 = 2;
const MORE: u64 = 1;

struct Wired {
    device: Device,
    memory: Shared,
    kernel: OwnedFd,
}

impl Wired {
    /// What the device answers, or why it takes the message for a lie.
    fn told(&mut self, request: u32, payload: &[u8], files: &[RawFd]) -> io::Result<Vec<u8>> {
        let message = vhost(request, payload);
        write_with(&self.kernel, &message, files, MsgFlags::empty()).expect("room");
        assert!(matches!(self.device.receive()?, Event::Settled));
        let mut answer = [0; 64];
        let Read::Bytes(count) = read_with(&self.kernel, &mut answer, MsgFlags::MSG_DONTWAIT).0
        else {
            panic!("no answer");
        };
        assert_eq!(answer[..4], request.to_ne_bytes());
        assert_eq!(answer[4..8], (1u32 | 4).to_ne_bytes(), "version 1, a reply");
        assert_eq!(answer[8..12], (count as u32 - 12).to_ne_bytes());
        Ok(answer[12..count].to_vec())
    }
}

fn wired(kind: Kind) -> Wired {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let kernel = OwnedFd::from(ours);
    let mut wired = Wired {
        device: Device::new(kind, theirs.into()),
        memory: Shared::new(MEMORY),
        kernel,
    };
    for (request, payload) in Kernel::setup(MEMORY as u64, true) {
        let file = [wired.memory.file.as_raw_fd()];
        let files = if request == 5 { &file[..] } else { &[] };
        let answer = wired.told(request, &payload, files).expect("no lie");
        assert_eq!(answer, [0; 8]);
    }
    wired
}

fn card() -> Wired {
    wired(Kind::Network {
        mac: [2, 0, 0, 0, 0, 1],
        is_trunk: false,
    })
}

/// One chain of a queue's buffers: where each lies, and how long it is.
type Chain = Vec<(usize, usize)>;

/// Write chains into a queue, from its first descriptor on; each begins with a descriptor of its own number.
fn describe(memory: &Shared, queue: usize, chains: &[Chain], flags: u64) -> Vec<u16> {
    let (mut heads, mut number) = (Vec::new(), 0);
    for chain in chains {
        heads.push(number as u16);
        for (at, (address, length)) in chain.iter().enumerate() {
            let more = at + 1 < chain.len();
            let next = if more { number as u64 + 1 } else { 0 };
            let flags = flags | if more { MORE } else { 0 };
            let words = [*address as u64, *length as u64 | flags << 32 | next << 48];
            memory.put(queue + 16 * number, &words.map(u64::to_le_bytes).concat());
            number += 1;
        }
    }
    for (at, head) in heads.iter().enumerate() {
        memory.put(queue + AVAILABLE + 4 + 2 * at, &head.to_le_bytes());
    }
    heads
}

fn read(memory: &Shared, address: usize, length: usize) -> Vec<u8> {
    (address..address + length)
        .map(|at| memory.get::<1>(at)[0])
        .collect()
}

/// Buffers one behind the other, in chains of one to three, together no more than a queue's.
fn chains(chance: &mut Chance, sizes: &[u64]) -> Vec<Chain> {
    let (mut chains, mut left, mut address) = (Vec::new(), u64::from(QUEUE_SIZE), BUFFERS);
    while left > 0 {
        let parts = (1 + chance.below(3)).min(left);
        left -= parts;
        let part = |_| {
            let length = chance.pick(sizes) as usize;
            address += length;
            (address - length, length)
        };
        chains.push((0..parts).map(part).collect());
    }
    chains
}

#[test]
fn a_queue_goes_on_where_the_kernel_says() {
    let mut card = card();
    for (queue, base) in [(0u32, 5u32), (1, 250)] {
        let pair = [queue.to_ne_bytes(), base.to_ne_bytes()].concat();
        card.told(10, &pair, &[]).expect("no lie");
        let asked = [queue.to_ne_bytes(), [0; 4]].concat();
        assert_eq!(card.told(11, &asked, &[]).expect("no lie"), pair);
    }
}

#[test]
fn messages_that_wait_for_no_answer_may_come_one_behind_the_other() {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let mut device = Device::new(Kind::Console, theirs.into());
    let asks = |request, payload: &[u8]| {
        let mut message = vhost(request, payload);
        message[4..8].copy_from_slice(&1u32.to_ne_bytes());
        message
    };
    let size = [0u32, 16].map(u32::to_ne_bytes).concat();
    let messages = [asks(16, &[0; 8]), asks(8, &size), asks(8, &size)].concat();
    write_with(&ours.into(), &messages, &[], MsgFlags::empty()).expect("room");
    for _ in 0..3 {
        assert!(matches!(device.receive(), Ok(Event::Settled)));
    }
}

#[test]
fn a_card_has_two_queues() {
    assert_eq!(
        card().told(17, &[], &[]).expect("no lie"),
        2u64.to_ne_bytes()
    );
}

/// With its head of 12 bytes it has 4 KiB.
#[test]
fn the_longest_message_is_taken_and_one_byte_more_is_a_lie() {
    for (bytes, taken) in [(4084, true), (4085, false)] {
        let told = card().told(10, &vec![0; bytes], &[]);
        assert_eq!(told.is_ok(), taken, "{bytes} bytes");
    }
}

#[test]
fn a_region_of_memory_that_is_told_of_and_not_sent_is_a_lie() {
    let mut card = card();
    let region = [0u64, MEMORY as u64, 0, 0].map(u64::to_ne_bytes).concat();
    for count in [0u32, 2] {
        let head = [count.to_ne_bytes(), [0; 4]].concat();
        let file = [card.memory.file.as_raw_fd()];
        let table = [&head[..], &region, &region].concat();
        assert!(card.told(5, &table, &file).is_err(), "{count} of 1");
    }
}

#[test]
fn the_longest_frame_is_taken_and_one_byte_more_is_a_lie() {
    for (more, taken) in [(0, true), (1, false)] {
        let Wired {
            mut device, memory, ..
        } = card();
        let length = NET_HEADER + LONGEST_FRAME + more;
        describe(&memory, QUEUE, &[vec![(BUFFERS, length)]], 0);
        memory.put(QUEUE + AVAILABLE + 2, &1u16.to_le_bytes());
        let output = device.rings.take_output(None);
        assert_eq!(output.is_ok(), taken);
        if let Ok(frames) = output {
            assert_eq!(frames[0].len(), LONGEST_FRAME);
        }
    }
}

/// Eight times the same chain of 128 buffers of one byte: no honest kernel's, and the most pieces that are taken.
#[test]
fn a_frame_is_put_into_1024_pieces_and_no_more() {
    for (more, taken) in [(0, true), (1, false)] {
        let Wired {
            mut device, memory, ..
        } = card();
        let chain = (0..128).map(|at| (BUFFERS + at, 1)).collect();
        describe(&memory, 0, &[chain], WRITABLE);
        memory.put(AVAILABLE + 2, &9u16.to_le_bytes());
        let frame = vec![0; 1024 - NET_HEADER + more];
        assert_eq!(device.rings.put_input(&frame).is_ok(), taken);
    }
}

/// As whoever reads a control line slowly: what has gone is said to have gone.
#[test]
fn what_waits_for_a_slow_reader_goes_when_there_is_room() {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let (ours, theirs) = (OwnedFd::from(ours), OwnedFd::from(theirs));
    let text: Vec<u8> = (0..4_000_000u32).map(|at| at as u8).collect();
    let mut outbox = Outbox::default();
    outbox.send(ours.as_raw_fd(), &text).expect("open");
    assert!(outbox.waiting() > 0);
    let (mut came, mut piece) = (Vec::new(), vec![0; 100_000]);
    while came.len() < text.len() {
        let before = outbox.waiting();
        let Read::Bytes(count) = read_with(&theirs, &mut piece, MsgFlags::MSG_DONTWAIT).0 else {
            panic!("nothing comes");
        };
        came.extend_from_slice(&piece[..count]);
        let gone = outbox.flush(ours.as_raw_fd()).expect("open");
        assert_eq!(gone, outbox.waiting() < before);
    }
    assert!(came == text);
}

#[test]
fn what_comes_to_a_card_lies_in_its_buffers_or_there_was_no_room() {
    for_all(|chance| {
        let Wired {
            mut device, memory, ..
        } = card();
        let chains = chains(chance, &[64, 100, 1526, 2048]);
        let heads = describe(&memory, 0, &chains, WRITABLE);
        let given = 1 + chance.below(heads.len() as u64) as usize;
        memory.put(AVAILABLE + 2, &(given as u16).to_le_bytes());
        let mut used = 0;
        loop {
            let length = chance.pick(&[14, 60, 1514, 9014]) as usize;
            let frame: Vec<u8> = (0..length).map(|_| chance.next() as u8).collect();
            let (delivery, taken) = device.rings.put_input(&frame).expect("no lie");
            let now = u16::from_le_bytes(memory.get(USED + 2)) as usize;
            if delivery == Delivery::NoRoom {
                let rest = chains[used..given].iter().flatten();
                assert!(rest.map(|part| part.1).sum::<usize>() < NET_HEADER + length);
                assert_eq!((taken, now), (0, used));
                break;
            }
            assert_eq!((delivery, taken), (Delivery::Call, length));
            let mut whole = Vec::new();
            for place in used..now {
                let entry = USED + 4 + 8 * place;
                let head = u32::from_le_bytes(memory.get(entry)) as usize;
                let mut filled = u32::from_le_bytes(memory.get(entry + 4)) as usize;
                assert_eq!(head, usize::from(heads[place]), "in the order given");
                for (address, room) in &chains[place] {
                    let count = filled.min(*room);
                    whole.extend(read(&memory, *address, count));
                    filled -= count;
                }
                assert_eq!(filled, 0, "no more than there is room for");
            }
            let number = u16::from_le_bytes([whole[10], whole[11]]) as usize;
            assert_eq!(number, now - used, "buffers of one frame");
            assert_eq!(whole[NET_HEADER..], frame);
            used = now;
        }
    });
}

/// And nobody sees what has been put ahead before it is to be seen.
#[test]
fn what_is_put_ahead_is_seen_later_and_lies_where_it_is_said_to() {
    for_all(|chance| {
        let Wired {
            mut device, memory, ..
        } = card();
        let chains: Vec<Chain> = (0..256)
            .map(|at| vec![(BUFFERS + 2048 * at, 2048)])
            .collect();
        describe(&memory, 0, &chains, WRITABLE);
        memory.put(AVAILABLE + 2, &256u16.to_le_bytes());
        let mut frames = Vec::new();
        for number in 0..1 + chance.below(256) as u16 {
            let length = 14 + chance.below(1500) as usize;
            let frame: Vec<u8> = (0..length).map(|_| chance.next() as u8).collect();
            let index = device.rings.put_ahead(&frame).expect("no lie");
            assert_eq!(index, Some(number + 1));
            assert_eq!(memory.get::<2>(USED + 2), [0, 0]);
            frames.push(frame);
        }
        device.rings.publish().expect("no lie");
        let count = u16::from_le_bytes(memory.get(USED + 2)) as usize;
        assert_eq!(count, frames.len());
        for (at, frame) in frames.iter().enumerate() {
            let length = u32::from_le_bytes(memory.get(USED + 8 + 8 * at)) as usize;
            let whole = read(&memory, BUFFERS + 2048 * at, length);
            assert_eq!(whole[NET_HEADER..], frame[..]);
        }
    });
}

#[test]
fn what_a_card_puts_out_is_taken_whole_and_up_to_where_it_is_said() {
    for_all(|chance| {
        let Wired {
            mut device, memory, ..
        } = card();
        let chains = chains(chance, &[30, 98, 700]);
        let heads = describe(&memory, QUEUE, &chains, 0);
        for (address, length) in chains.iter().flatten() {
            let bytes: Vec<u8> = (0..*length).map(|_| chance.next() as u8).collect();
            memory.put(*address, &bytes);
        }
        let content = |chain: &Chain| {
            let parts = chain.iter().map(|part| read(&memory, part.0, part.1));
            parts.collect::<Vec<_>>().concat()[NET_HEADER..].to_vec()
        };
        let wanted: Vec<Vec<u8>> = chains.iter().map(content).collect();
        memory.put(QUEUE + AVAILABLE + 2, &(heads.len() as u16).to_le_bytes());
        let some = chance.below(heads.len() as u64 + 1) as u16;
        let first = device.rings.take_output(Some(some)).expect("no lie");
        assert_eq!(first, wanted[..usize::from(some)]);
        assert_eq!(memory.get::<2>(QUEUE + USED + 2), some.to_le_bytes());
        let rest = device.rings.take_output(None).expect("no lie");
        assert_eq!(rest, wanted[usize::from(some)..]);
        assert_eq!(
            device.rings.take_output(None).expect("no lie"),
            Vec::<Vec<u8>>::new()
        );
    });
}

#[test]
fn a_console_takes_as_much_as_it_has_room_for() {
    for_all(|chance| {
        let Wired {
            mut device, memory, ..
        } = wired(Kind::Console);
        let chains = chains(chance, &[1, 16, 100]);
        let heads = describe(&memory, 0, &chains, WRITABLE);
        let given = 1 + chance.below(heads.len() as u64) as usize;
        memory.put(AVAILABLE + 2, &(given as u16).to_le_bytes());
        let room: usize = chains[..given].iter().flatten().map(|part| part.1).sum();
        let length = 1 + chance.below(2 * room as u64) as usize;
        let text: Vec<u8> = (0..length).map(|_| chance.next() as u8).collect();
        let (_, taken) = device.rings.put_input(&text).expect("no lie");
        assert_eq!(taken, length.min(room));
        let parts = chains[..given].iter().flatten();
        let read: Vec<u8> = parts
            .flat_map(|part| read(&memory, part.0, part.1))
            .collect();
        assert_eq!(read[..taken], text[..taken]);
    });
}
