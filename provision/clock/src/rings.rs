//! The virtio queues of a kernel's card or console, which lie in the kernel's own memory.
//!
//! Queues may hold anything, and change while they are read. So no loop takes more rounds than a queue has entries.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use virtio_queue::{Queue, QueueT};
use vm_memory::{
    Bytes, FileOffset, GuestAddress, GuestMemory, GuestMemoryMmap, GuestMemoryRegion, MmapRegion,
};

use crate::calendar::lie;
use crate::device::Kind;
use crate::taken_away;
use crate::wire::SHORTEST_FRAME;

/// How many entries a queue has.
pub const QUEUE_SIZE: u16 = 256;
/// The longest frame, in bytes: Linux's largest MTU, an Ethernet header and two VLAN tags (IEEE 802.1ad). No card offers to
/// take longer ones apart (VIRTIO_NET_F_HOST_TSO4 and its like).
pub const LONGEST_FRAME: usize = 65_535 + 14 + 8;
/// The longest piece of console output, in bytes. hvc(4) sends a page at the most.
const LONGEST_TEXT: usize = 1 << 16;
/// How many pieces of a kernel's memory a frame may be put into. Of Linux's buffers, 45 hold the longest, in two pieces each.
const MOST_PIECES: usize = 1024;
/// How much memory a kernel may tell of, in bytes: as much as any host has (1 TiB, by tools/minigts/language/quantities.py), and as
/// much again. There are addresses in this process for 64 such, and its own memory needs some, too.
const MOST_MEMORY: u64 = 2 << 40;
/// The queues' numbers.
pub const INPUT: usize = 0;
pub const OUTPUT: usize = 1;
/// The length of a virtio header in front of a frame, in bytes.
const NET_HEADER: usize = 12;
// Offsets in the ring of used buffers, and the length of its entries.
const USED_INDEX: u64 = 2;
const USED_HEADER: u64 = 4;
const USED_ENTRY: u64 = 8;

/// What came of bytes that were to be put into a kernel's memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    #[default]
    NoRoom,
    /// The kernel looks for them by itself.
    Silent,
    /// The kernel has to be called.
    Call,
}

/// A part of a kernel's memory: its address for the kernel, its size in bytes, and where in the file it begins.
pub struct Region {
    pub address: u64,
    pub size: u64,
    pub offset: u64,
    pub file: OwnedFd,
}

/// A kernel's memory, as this process has it.
pub struct Memory {
    mapped: GuestMemoryMmap,
    /// The address in this process of each region, and its size.
    regions: Vec<(usize, usize)>,
}

impl Memory {
    /// Map a kernel's memory. Its file has to lie in this machine's memory, as all files do that a kernel makes for itself:
    /// what a disk or a program serves could be read as slowly as it likes.
    pub fn map(regions: Vec<Region>) -> io::Result<Memory> {
        let (mut ranges, mut whole) = (Vec::new(), 0u64);
        for Region {
            address,
            size,
            offset,
            file,
        } in regions
        {
            if !lies_in_memory(&file)? {
                return Err(lie("its memory is no file in this machine's memory"));
            }
            whole = size.saturating_add(whole);
            if whole > MOST_MEMORY {
                return Err(lie(format!("it told of {whole} bytes of memory")));
            }
            let file = FileOffset::new(File::from(file), offset);
            ranges.push((GuestAddress(address), size as usize, Some(file)));
        }
        let mapped: GuestMemoryMmap =
            GuestMemoryMmap::from_ranges_with_files(ranges).map_err(other)?;
        let place = |region: &MmapRegion| (region.as_ptr() as usize, region.size());
        let regions = mapped.iter().map(|region| place(region)).collect();
        Ok(Memory { mapped, regions })
    }
}

impl Memory {
    /// The same regions in another file of the same kind.
    fn in_another(&self, file: &OwnedFd) -> io::Result<Memory> {
        let regions = self.mapped.iter().map(|region| {
            Ok(Region {
                address: region.start_addr().0,
                size: region.len(),
                offset: region.file_offset().map_or(0, |offset| offset.start()),
                file: file.try_clone()?,
            })
        });
        Memory::map(regions.collect::<io::Result<Vec<_>>>()?)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        taken_away::forget();
    }
}

/// The queues of one device, and the kernel's memory that they lie in; None until the kernel has told of it.
pub struct Rings {
    kind: Kind,
    pub memory: Option<Memory>,
    /// By number: INPUT, OUTPUT.
    pub queues: [Queue; 2],
}

impl Rings {
    pub fn new(kind: Kind) -> Rings {
        let queue = || Queue::new(QUEUE_SIZE).expect("a power of two");
        Rings {
            kind,
            memory: None,
            queues: [queue(), queue()],
        }
    }

    /// The queues are in another file from now on: the memory of a kernel that has been this one until now.
    pub fn move_to(&mut self, file: &OwnedFd) -> io::Result<()> {
        if let Some(memory) = &self.memory {
            self.memory = Some(memory.in_another(file)?);
        }
        Ok(())
    }

    /// Take what is in the output queue: up to and without the entry `available`, if that is given, and no more pieces than the
    /// queue has entries. The pieces are without their virtio headers.
    pub fn take_output(&mut self, available: Option<u16>) -> io::Result<Vec<Vec<u8>>> {
        self.touching(|rings, memory| rings.take_from(memory, available))
    }

    /// Put a frame into the input queue, or as much of the console's input as there is room for.
    ///
    /// Returns also how many of the bytes went in: all or none of a frame.
    pub fn put_input(&mut self, bytes: &[u8]) -> io::Result<(Delivery, usize)> {
        self.touching(|rings, memory| match rings.kind {
            Kind::Network { .. } => rings.put_frame(memory, bytes),
            Kind::Console => rings.put_text(memory, bytes),
        })
    }

    /// Put a frame into the input queue so that the kernel does not see it yet. It sees it when it is told the index that is
    /// returned. None if there is no room.
    pub fn put_ahead(&mut self, frame: &[u8]) -> io::Result<Option<u16>> {
        self.touching(|rings, memory| rings.put_unseen(memory, frame))
    }

    /// Let the kernel see all that is in the input queue.
    pub fn publish(&mut self) -> io::Result<()> {
        self.touching(|rings, memory| {
            let queue = &rings.queues[INPUT];
            let index = at(queue.used_ring(), USED_INDEX)?;
            memory
                .store(queue.next_used().to_le(), index, Ordering::Release)
                .map_err(other)
        })
    }

    /// Do something with the kernel's memory, which the kernel may take away meanwhile. Nothing is done as long as it has not
    /// told of its memory.
    fn touching<T: Default>(
        &mut self,
        act: impl FnOnce(&mut Rings, &GuestMemoryMmap) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(memory) = self.memory.take() else {
            return Ok(T::default());
        };
        taken_away::touch(&memory.regions);
        let done = act(self, &memory.mapped);
        self.memory = Some(memory);
        if taken_away::was_any() {
            return Err(lie(
                "it has taken its memory away, or there is no room for it on this machine",
            ));
        }
        done
    }

    fn take_from(
        &mut self,
        memory: &GuestMemoryMmap,
        available: Option<u16>,
    ) -> io::Result<Vec<Vec<u8>>> {
        let (header, shortest, longest) = match self.kind {
            Kind::Network { .. } => (NET_HEADER, SHORTEST_FRAME as usize, LONGEST_FRAME),
            Kind::Console => (0, 0, LONGEST_TEXT),
        };
        let queue = &mut self.queues[OUTPUT];
        let mut pieces = Vec::new();
        while available != Some(queue.next_avail()) && pieces.len() < usize::from(QUEUE_SIZE) {
            let Some(chain) = queue.pop_descriptor_chain(memory) else {
                break;
            };
            let head = chain.head_index();
            let mut piece = Vec::new();
            for part in chain.readable() {
                let start = piece.len();
                if start + part.len() as usize > header + longest {
                    return Err(lie(format!(
                        "it sent more than {longest} bytes at once by a port or its console"
                    )));
                }
                piece.resize(start + part.len() as usize, 0);
                memory
                    .read_slice(&mut piece[start..], part.addr())
                    .map_err(other)?;
            }
            if piece.len() < header + shortest {
                return Err(lie(format!(
                    "it sent a frame of {} bytes",
                    piece.len().saturating_sub(header)
                )));
            }
            queue.add_used(memory, head, 0).map_err(other)?;
            piece.drain(..header);
            pieces.push(piece);
        }
        Ok(pieces)
    }

    fn put_frame(
        &mut self,
        memory: &GuestMemoryMmap,
        frame: &[u8],
    ) -> io::Result<(Delivery, usize)> {
        let Some(buffers) = self.place(memory, frame)? else {
            return Ok((Delivery::NoRoom, 0));
        };
        let queue = &mut self.queues[INPUT];
        for (head, length) in buffers {
            queue.add_used(memory, head, length).map_err(other)?;
        }
        Ok((Self::notice(queue, memory)?, frame.len()))
    }

    fn put_unseen(&mut self, memory: &GuestMemoryMmap, frame: &[u8]) -> io::Result<Option<u16>> {
        let Some(buffers) = self.place(memory, frame)? else {
            return Ok(None);
        };
        let queue = &mut self.queues[INPUT];
        for (head, length) in buffers {
            let place = u64::from(queue.next_used() % queue.size());
            let entry = at(queue.used_ring(), USED_HEADER + USED_ENTRY * place)?;
            memory
                .write_obj([u32::from(head), length].map(u32::to_le), entry)
                .map_err(other)?;
            queue.set_next_used(queue.next_used().wrapping_add(1));
        }
        Ok(Some(queue.next_used()))
    }

    /// Write a frame into free buffers of the input queue. Returns which these are, and how many bytes are in each. None if they
    /// do not have room enough.
    fn place(
        &mut self,
        memory: &GuestMemoryMmap,
        frame: &[u8],
    ) -> io::Result<Option<Vec<(u16, u32)>>> {
        let queue = &mut self.queues[INPUT];
        if !queue.ready() {
            return Ok(None);
        }
        let start = queue.next_avail();
        let mut left: Vec<u8> = vec![0; NET_HEADER];
        left.extend_from_slice(frame);
        let (mut filled, mut used) = (0, Vec::new());
        while filled < left.len() {
            let Some(chain) = queue.pop_descriptor_chain(memory) else {
                queue.set_next_avail(start);
                return Ok(None);
            };
            let (head, before) = (chain.head_index(), filled);
            for part in chain.writable() {
                let count = (part.len() as usize).min(left.len() - filled);
                used.push((head, part.addr(), filled, count));
                filled += count;
                if used.len() > MOST_PIECES {
                    return Err(lie("it gave a frame nothing but tiny buffers"));
                }
            }
            if filled == before {
                return Err(lie("it gave an input buffer without room"));
            }
        }
        let mut heads: Vec<(u16, u32)> = Vec::new();
        for &(head, _, _, count) in &used {
            match heads.last_mut() {
                Some((last, length)) if *last == head => *length += count as u32,
                _ => heads.push((head, count as u32)),
            }
        }
        left[10..12].copy_from_slice(&(heads.len() as u16).to_le_bytes());
        for (_, address, from, count) in used {
            memory
                .write_slice(&left[from..from + count], address)
                .map_err(other)?;
        }
        Ok(Some(heads))
    }

    fn put_text(&mut self, memory: &GuestMemoryMmap, text: &[u8]) -> io::Result<(Delivery, usize)> {
        let queue = &mut self.queues[INPUT];
        if !queue.ready() {
            return Ok((Delivery::NoRoom, 0));
        }
        let mut taken = 0;
        for _ in 0..QUEUE_SIZE {
            if taken == text.len() {
                break;
            }
            let Some(chain) = queue.pop_descriptor_chain(memory) else {
                break;
            };
            let (head, before) = (chain.head_index(), taken);
            for part in chain.writable() {
                let count = (part.len() as usize).min(text.len() - taken);
                memory
                    .write_slice(&text[taken..taken + count], part.addr())
                    .map_err(other)?;
                taken += count;
            }
            queue
                .add_used(memory, head, (taken - before) as u32)
                .map_err(other)?;
        }
        if taken == 0 {
            return Ok((Delivery::NoRoom, 0));
        }
        Ok((Self::notice(queue, memory)?, taken))
    }

    fn notice(queue: &mut Queue, memory: &GuestMemoryMmap) -> io::Result<Delivery> {
        Ok(if queue.needs_notification(memory).map_err(other)? {
            Delivery::Call
        } else {
            Delivery::Silent
        })
    }
}

/// Whether it is a plain file in tmpfs: its pages are read at once, and nothing happens as they are.
fn lies_in_memory(file: &OwnedFd) -> io::Result<bool> {
    // SAFETY: both are plain numbers, which fstat and fstatfs fill.
    unsafe {
        let mut kind: libc::stat = std::mem::zeroed();
        let mut place: libc::statfs = std::mem::zeroed();
        let fd = file.as_raw_fd();
        if libc::fstat(fd, &mut kind) != 0 || libc::fstatfs(fd, &mut place) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(kind.st_mode & libc::S_IFMT == libc::S_IFREG && place.f_type == libc::TMPFS_MAGIC)
    }
}

fn at(ring: u64, offset: u64) -> io::Result<GuestAddress> {
    ring.checked_add(offset)
        .map(GuestAddress)
        .ok_or_else(|| lie("its queue lies beyond all memory"))
}

fn other(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}
