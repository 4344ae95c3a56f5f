//! Lets the clock survive a kernel that takes its shared memory away.
//!
//! The memory is a file of the kernel's, which the kernel can make shorter at any moment. Whoever touches what is no longer there
//! gets a SIGBUS. The handler here puts empty memory in its place, so that the clock goes on; then the clock ends that kernel.
//!
//! Reads by pread(2) would fail with an error instead, but a frame takes some ten of them.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many regions a kernel's memory may have: as many as a vhost-user message has room for.
pub const MOST_REGIONS: usize = 8;

/// The address and the size of each region that is touched now. One thread touches them, and the handler runs in that thread.
static TOUCHED: [[AtomicUsize; 2]; MOST_REGIONS] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; MOST_REGIONS];
/// Whether something was not there.
static TAKEN_AWAY: AtomicBool = AtomicBool::new(false);

/// Install the handler.
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

/// Tell the handler what will be touched next: the address and the size of each region.
pub fn touch(regions: &[(usize, usize)]) {
    for (index, place) in TOUCHED.iter().enumerate() {
        let (start, length) = regions.get(index).copied().unwrap_or((0, 0));
        place[0].store(start, Ordering::Relaxed);
        place[1].store(length, Ordering::Relaxed);
    }
}

/// Tell the handler that nothing is touched: what lies at those addresses may be something else from now on.
pub fn forget() {
    touch(&[]);
}

/// Whether any of it was not there since this was last called.
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
        // SAFETY: that range is the clock's mapping of a kernel's memory, and may be replaced.
        let made = unsafe { libc::mmap(start as *mut libc::c_void, length, both, flags, -1, 0) };
        if made != libc::MAP_FAILED {
            TAKEN_AWAY.store(true, Ordering::Relaxed);
            return;
        }
    }
    // The address is in no kernel's memory. The access is tried again, which ends the process.
    // SAFETY: signal(2) is safe in a handler.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
}
