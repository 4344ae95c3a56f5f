//! Memory that a kernel shares with the clock is a file of the kernel's, which can make it shorter at any moment. To touch
//! what is no longer there is a SIGBUS. Its handler puts empty memory in its place, so that the clock goes on; then the
//! kernel is ended for it.
//!
//! Not a read by pread(2) instead, which would fail in words: it takes some ten calls a frame.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// As many regions as vhost-user's table of memory has at the most.
pub const MOST_REGIONS: usize = 8;

/// Where what is touched now begins and how long it is. One thread touches; the handler runs in it.
static TOUCHED: [[AtomicUsize; 2]; MOST_REGIONS] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; MOST_REGIONS];
static TAKEN_AWAY: AtomicBool = AtomicBool::new(false);

/// Let the process survive what kernels take away.
pub fn install() -> io::Result<()> {
    // SAFETY: the handler calls mmap and nothing else that is not safe there.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus_error as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO;
        if libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Say what will be touched next: address and length of each region.
pub fn touch(regions: &[(usize, usize)]) {
    for (index, place) in TOUCHED.iter().enumerate() {
        let (start, length) = regions.get(index).copied().unwrap_or((0, 0));
        place[0].store(start, Ordering::Relaxed);
        place[1].store(length, Ordering::Relaxed);
    }
}

/// Whether any of it was not there, since this was last asked.
pub fn was_any() -> bool {
    TAKEN_AWAY.load(Ordering::Relaxed) && TAKEN_AWAY.swap(false, Ordering::Relaxed)
}

extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands a whole siginfo_t over.
    let address = unsafe { (*info).si_addr() } as usize;
    for place in &TOUCHED {
        let (start, length) = (
            place[0].load(Ordering::Relaxed),
            place[1].load(Ordering::Relaxed),
        );
        if address.wrapping_sub(start) >= length {
            continue;
        }
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: that range is a mapping of the kernel's memory, which is the clock's to replace.
        let made = unsafe { libc::mmap(start as *mut libc::c_void, length, both, flags, -1, 0) };
        if made != libc::MAP_FAILED {
            TAKEN_AWAY.store(true, Ordering::Relaxed);
            return;
        }
    }
    // No memory of a kernel's: the access is tried again, and ends the process.
    // SAFETY: signal(2) is safe in a handler.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
}
