//! The page of memory that a kernel and the clock share: its words, and the notes behind them.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use nix::fcntl::{fcntl, FcntlArg, SealFlag};
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
use nix::sys::mman::{mmap, munmap, MapFlags, ProtFlags};

/// At `time`, a queue of `device` got more entries, up to and without the entry `index`: output that the kernel has sent, or input
/// that the clock has put there. The time is in nanoseconds.
pub struct Note {
    pub time: u64,
    pub device: usize,
    pub index: u16,
}

/// For how many notes of each kind the page has room.
pub const NOTES: usize = 256;

/// The kernel's number on its page, which no other kernel is on.
pub const ID: u16 = 0;
const VERSION: u32 = 2;
const CAN_SHARE: u32 = 1;
const WANTS_TO_RUN: u32 = 1;
const CLIENT: usize = 128;

/// `struct um_timetravel_schedshm` of linux/um_timetravel.h with room for one kernel: a page for the clock's words, then one for
/// the kernel's own, and behind it the notes.
pub struct Page {
    file: File,
    memory: NonNull<c_void>,
}

// Offsets in it.
const LENGTH_AT: usize = 4;
const FREE_UNTIL_AT: usize = 8;
const TIME_AT: usize = 16;
const RUNNING_AT: usize = 24;
const CLIENTS_AT: usize = 26;
const OWN_AT: usize = 4096;
const CAPABILITIES_AT: usize = OWN_AT;
const FLAGS_AT: usize = OWN_AT + 4;
const REQUEST_AT: usize = OWN_AT + 8;
// Behind it, what our own kernel knows of (provision/kernel/patches/0008-frames-noted-on-the-calendar.patch, and 0024 for
// the last word).
const NOTES_AT: usize = OWN_AT + CLIENT;
const CALLS_AT: usize = NOTES_AT;
const SENT_COUNT_AT: usize = NOTES_AT + 8;
const DUE_COUNT_AT: usize = NOTES_AT + 12;
const DUE_TAKEN_AT: usize = NOTES_AT + 16;
const SENT_AT: usize = NOTES_AT + 24;
const NOTE: usize = 16;
const DUE_AT: usize = SENT_AT + NOTE * NOTES;
const CHANGED_AT: usize = DUE_AT + NOTE * NOTES;
const LENGTH: usize = CHANGED_AT + 8;

impl Page {
    pub fn new() -> io::Result<Page> {
        let flags = MemFdCreateFlag::MFD_CLOEXEC | MemFdCreateFlag::MFD_ALLOW_SEALING;
        let file = File::from(memfd_create(c"calendar", flags)?);
        file.set_len(LENGTH as u64)?;
        // The kernel gets it, and must not make it shorter under the clock.
        let sealed = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(file.as_raw_fd(), FcntlArg::F_ADD_SEALS(sealed))?;
        let length = NonZeroUsize::new(LENGTH).expect("not zero");
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping of a file of that length, which is unmapped with the page.
        let memory = unsafe { mmap(None, length, both, MapFlags::MAP_SHARED, &file, 0)? };
        let page = Page { file, memory };
        page.set(0, VERSION);
        page.set(LENGTH_AT, LENGTH as u32);
        page.set(RUNNING_AT, ID);
        page.set(CLIENTS_AT, 1u16);
        Ok(page)
    }

    /// Another page with the same words, for another kernel.
    pub fn copy(&self) -> io::Result<Page> {
        let other = Page::new()?;
        for at in (0..LENGTH).step_by(8) {
            other.set(at, self.get::<u64>(at));
        }
        Ok(other)
    }

    /// The file that the kernel maps.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// How far the kernel has come, in nanoseconds of its own time.
    pub fn time(&self) -> u64 {
        self.get(TIME_AT)
    }

    pub fn set_time(&self, now: u64) {
        self.set(TIME_AT, now);
    }

    /// Until when the kernel may go by itself.
    pub fn set_free_until(&self, time: u64) {
        self.set(FREE_UNTIL_AT, time);
    }

    /// When the kernel has asked to run next; None: it has not, or it does not share the page.
    pub fn request(&self) -> Option<u64> {
        let able: u32 = self.get(CAPABILITIES_AT);
        let flags: u32 = self.get(FLAGS_AT);
        (able & CAN_SHARE != 0 && flags & WANTS_TO_RUN != 0).then(|| self.get(REQUEST_AT))
    }

    /// Which devices have input for the kernel, one bit each.
    pub fn set_calls(&self, calls: u64) {
        self.set(CALLS_AT, calls);
    }

    /// Which devices have other settings than the kernel knows of, one bit each.
    pub fn set_changed(&self, changed: u64) {
        self.set(CHANGED_AT, changed);
    }

    /// How many frames the kernel has noted that it sent. It may say any number.
    pub fn sent_count(&self) -> u32 {
        self.get(SENT_COUNT_AT)
    }

    pub fn set_sent_count(&self, count: u32) {
        self.set(SENT_COUNT_AT, count);
    }

    /// The kernel's note of that index, which is below NOTES.
    pub fn sent(&self, index: usize) -> Note {
        self.note(SENT_AT, index)
    }

    /// Note what comes within the kernel's turn; it has taken none of that yet. No more than NOTES.
    pub fn set_due(&self, notes: impl ExactSizeIterator<Item = Note>) {
        self.set(DUE_COUNT_AT, notes.len() as u32);
        self.set(DUE_TAKEN_AT, 0u32);
        for (index, note) in notes.enumerate() {
            self.set_note(DUE_AT, index, &note);
        }
    }

    /// How many of those notes the kernel has taken. It may say any number.
    pub fn due_taken(&self) -> u32 {
        self.get(DUE_TAKEN_AT)
    }

    fn note(&self, table: usize, number: usize) -> Note {
        let at = table + number * NOTE;
        let (device, index): (u32, u32) = (self.get(at + 8), self.get(at + 12));
        Note {
            time: self.get(at),
            device: device as usize,
            index: index as u16,
        }
    }

    fn set_note(&self, table: usize, number: usize, note: &Note) {
        let at = table + number * NOTE;
        self.set(at, note.time);
        self.set(at + 8, note.device as u32);
        self.set(at + 12, u32::from(note.index));
    }

    fn get<T: Copy>(&self, at: usize) -> T {
        // SAFETY: the place is within the mapping and aligned. Whatever a kernel writes there meanwhile, any bits are a number.
        unsafe { self.memory.cast::<u8>().add(at).cast::<T>().read_volatile() }
    }

    fn set<T>(&self, at: usize, value: T) {
        // SAFETY: as for `get`.
        unsafe {
            self.memory
                .cast::<u8>()
                .add(at)
                .cast::<T>()
                .write_volatile(value)
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nothing else knows of it.
        let _ = unsafe { munmap(self.memory, LENGTH) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_was_asked_for() {
        let page = Page::new().unwrap();
        assert_eq!(page.request(), None);
        page.set(CAPABILITIES_AT, CAN_SHARE);
        page.set(FLAGS_AT, WANTS_TO_RUN);
        page.set(REQUEST_AT, 5_000_000_017u64);
        assert_eq!(page.request(), Some(5_000_000_017));
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let page = Page::new().unwrap();
        for (table, number) in [
            (SENT_AT, 0),
            (SENT_AT, NOTES - 1),
            (DUE_AT, 0),
            (DUE_AT, NOTES - 1),
        ] {
            page.set_note(
                table,
                number,
                &Note {
                    time: u64::MAX - number as u64,
                    device: 3,
                    index: u16::MAX,
                },
            );
        }
        let note = page.note(SENT_AT, NOTES - 1);
        assert_eq!(
            (note.time, note.device, note.index),
            (u64::MAX - 255, 3, u16::MAX)
        );
        assert_eq!(page.note(DUE_AT, 0).time, u64::MAX);
    }

    #[test]
    fn a_copy_has_the_same_words_and_goes_its_own_way() {
        let page = Page::new().unwrap();
        page.set_time(7);
        page.set_changed(1 << 63);
        let other = page.copy().unwrap();
        page.set_time(8);
        assert_eq!((other.time(), page.time()), (7, 8));
        assert_eq!(other.get::<u64>(CHANGED_AT), 1 << 63);
    }

    #[test]
    fn a_page_cannot_be_made_shorter_by_who_shares_it() {
        let page = Page::new().unwrap();
        let shared = page.file.try_clone().unwrap();
        assert!(shared.set_len(0).is_err() && shared.set_len(1 << 20).is_err());
        assert_eq!(page.time(), 0);
    }
}
