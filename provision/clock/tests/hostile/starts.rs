//! Kernels that start and end, one after the other, each in another way: what does the clock hold afterwards?
//!
//! After each tenth it has to hold what it held before the first: open files of each kind, threads, shared memory, and memory of
//! its own within a bound. Two kernels, a client that sleeps and one that asks go on meanwhile. STARTS says how many kernels there
//! are, else a hundred. What happens where the clock may open no more files, and what a kernel could have it keep, is here, too.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::fs::{read_dir, read_link, read_to_string, File};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use serde_json::{json, Value};

use crate::kernel::{
    has_unread, start, vhost, write, write_with, Client, Clock, Kernel, Shared, AVAILABLE, BUFFERS,
    HELLO, NOTES, OWN, QUEUE, START, USED, WAIT,
};
use crate::{company, given, lab, Chance, Others, LIAR, LIAR_PORTS, LONGEST, MB, MEMORY, STEP_NS};

/// How many starts there are between two looks at what the clock holds.
const BETWEEN_LOOKS: u64 = 10;
/// How much more memory of its own the clock may have than before the first start, in bytes. What the others' frames and requests
/// take for a moment is in it, and pieces that the allocator keeps.
const MOST_GROWTH: u64 = 6 * MB;
/// How many private mappings more there may be: the allocator's.
const MOST_PRIVATE: usize = 4;
/// A file that takes no memory until it is touched, and more of it than any host has.
const SPARSE: u64 = 1 << 46;
const SET_MEM_TABLE: u32 = 5;
const SET_BACKEND_REQUESTS: u32 = 21;
const GET_FEATURES: u32 = 1;
const KICK: u32 = 35;
/// SCM_MAX_FD.
const MOST_DESCRIPTORS: usize = 253;

/// What a process holds of its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holds {
    /// How many open files of each kind.
    files: BTreeMap<String, usize>,
    threads: usize,
    /// How many shared mappings, by what is mapped.
    shared: BTreeMap<String, usize>,
}

fn count(of: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    of.for_each(|one| *counts.entry(one).or_default() += 1);
    counts
}

fn proc_of(clock: &Clock) -> PathBuf {
    Path::new("/proc").join(clock.process.id().to_string())
}

impl Holds {
    fn of(clock: &Clock) -> Holds {
        let own = proc_of(clock);
        // `socket:[123]` is a socket, whichever it is.
        let kind = |place: PathBuf| {
            let text = place.to_string_lossy().into_owned();
            text.split_once(":[")
                .filter(|(kind, _)| *kind != "anon_inode")
                .map_or(text.clone(), |(kind, _)| kind.into())
        };
        let files = read_dir(own.join("fd")).unwrap();
        let maps = read_to_string(own.join("maps")).unwrap();
        let shared = maps.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let is_shared = words.nth(1)?.ends_with('s');
            is_shared.then(|| words.nth(3).unwrap_or_default().to_string())
        });
        Holds {
            files: count(files.filter_map(|file| read_link(file.ok()?.path()).ok().map(kind))),
            threads: read_dir(own.join("task")).unwrap().count(),
            shared: count(shared),
        }
    }
}

fn private_mappings(clock: &Clock) -> usize {
    let maps = read_to_string(proc_of(clock).join("maps")).unwrap();
    maps.lines().filter(|line| line.contains("p ")).count()
}

/// How many ticks of the processor's time the clock has used.
fn processor_ticks(clock: &Clock) -> u64 {
    let stat = read_to_string(proc_of(clock).join("stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let words = after_name.split_whitespace().skip(11).take(2);
    words.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// A descriptor that a call has just made.
fn made(number: RawFd) -> OwnedFd {
    Errno::result(number).unwrap();
    // SAFETY: it is nobody else's.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Descriptors of unusual kinds, in which others wait that nobody reads.
fn strange() -> Vec<OwnedFd> {
    let mut pipe = [0; 2];
    // SAFETY: calls that make descriptors, and write nothing but two numbers.
    let made_ones = unsafe {
        Errno::result(libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC)).unwrap();
        [
            made(pipe[0]),
            made(pipe[1]),
            made(libc::epoll_create1(libc::EPOLL_CLOEXEC)),
            made(libc::eventfd(0, libc::EFD_CLOEXEC)),
            made(libc::timerfd_create(
                libc::CLOCK_MONOTONIC,
                libc::TFD_CLOEXEC,
            )),
            made(libc::inotify_init1(libc::IN_CLOEXEC)),
            made(libc::memfd_create(c"empty".as_ptr(), libc::MFD_CLOEXEC)),
        ]
    };
    let opened = |place: &str, flags: i32| -> OwnedFd {
        let mut options = File::options();
        options.read(true).custom_flags(flags);
        options.open(place).unwrap().into()
    };
    let sparse = Shared::new(4096).file.try_clone().unwrap();
    sparse.set_len(SPARSE).unwrap();
    // A socket in which descriptors wait, of which one is a socket in which descriptors wait, and so on.
    let (mut inner, mut ends) = UnixStream::pair().unwrap();
    for _ in 0..3 {
        let (outer, other) = UnixStream::pair().unwrap();
        let numbers = vec![inner.as_raw_fd(); 20];
        let end = OwnedFd::from(other);
        write_with(&end, b"x", &numbers, MsgFlags::empty()).unwrap();
        (inner, ends) = (outer, end.into());
    }
    let (itself, own_end) = UnixStream::pair().unwrap();
    let own_end = OwnedFd::from(own_end);
    write_with(&own_end, b"x", &[itself.as_raw_fd()], MsgFlags::empty()).unwrap();
    let mut all = Vec::from(made_ones);
    all.extend([
        opened("/dev/zero", 0),
        opened("/dev/null", 0),
        opened("/", libc::O_DIRECTORY),
        opened("/dev/shm", libc::O_DIRECTORY),
        opened("/dev/zero", libc::O_PATH),
        opened("/proc/self/maps", 0),
        opened("/proc/self/exe", 0),
        sparse.into(),
        inner.into(),
        ends.into(),
        itself.into(),
    ]);
    all
}

/// A kernel that is about to end, which has come as far as `stage` says.
struct Ending<'a> {
    kernel: Kernel,
    /// Each device's.
    memories: Vec<Shared>,
    chance: &'a RefCell<Chance>,
    strange: &'a [OwnedFd],
}

/// How far a kernel comes before it ends: it is announced; it has its page; its devices are set up; it has greeted.
const STAGES: usize = 4;

type Way = fn(&Ending);

/// Each has a name that says what the kernel does last.
const WAYS: [(&str, Way); 26] = [
    ("says nothing more", |_| {}),
    ("sends too many descriptors", |it| {
        let number = 9 + it.below(MOST_DESCRIPTORS - 8);
        it.send(it.some_request(), &[0; 16], &it.strange_ones(number));
    }),
    (
        "sends too many of one kind as a message has room for",
        |it| {
            let one = it.strange_ones(1)[0];
            it.send(SET_MEM_TABLE, &table(8, 4096), &[one; MOST_DESCRIPTORS]);
        },
    ),
    ("sends a part of a header", |it| {
        let part = &vhost(GET_FEATURES, &[])[..1 + it.below(11)];
        it.raw(part, &it.strange_ones(3));
    }),
    ("says that a message is longer than it is", |it| {
        let mut message = vhost(GET_FEATURES, &[0; 8]);
        message[8..12].copy_from_slice(&(9 + it.below(4000) as u32).to_ne_bytes());
        it.raw(&message, &it.strange_ones(4));
    }),
    ("says that a message is longer than any", |it| {
        let mut message = vhost(GET_FEATURES, &[0; 8]);
        message[8..12].copy_from_slice(&u32::MAX.to_ne_bytes());
        it.raw(&message, &it.strange_ones(4));
    }),
    ("sends descriptors with each part of a message", |it| {
        let message = vhost(SET_MEM_TABLE, &table(2, 4096));
        let (first, rest) = message.split_at(12);
        it.raw(first, &it.strange_ones(2));
        it.raw(rest, &it.strange_ones(8));
    }),
    ("tells of more memory than its file has", |it| {
        let file = Shared::new(4096);
        it.send(SET_MEM_TABLE, &table(1, 1 << 20), &[file.file.as_raw_fd()]);
    }),
    ("tells of memory beyond all addresses", |it| {
        let file = Shared::new(4096);
        let wrong = region_at(u64::MAX - 4096, 4096, u64::MAX - 100);
        it.send(SET_MEM_TABLE, &wrong, &[file.file.as_raw_fd()]);
    }),
    ("tells of more memory than any host has", |it| {
        let file = Shared::new(4096);
        file.file.set_len(SPARSE).unwrap();
        it.send(SET_MEM_TABLE, &table(1, SPARSE), &[file.file.as_raw_fd()]);
    }),
    ("tells of memory and sends none", |it| {
        it.send(SET_MEM_TABLE, &table(1 + it.below(8), 4096), &[]);
    }),
    ("sends something strange as its memory", |it| {
        let number = 1 + it.below(8);
        let files = it.strange_ones(number);
        it.send(SET_MEM_TABLE, &table(number, 4096), &files);
    }),
    ("sends memory whose last region is none", |it| {
        let file = Shared::new(8 * 4096);
        let mut files = vec![file.file.as_raw_fd(); 7];
        files.extend(it.strange_ones(1));
        it.send(SET_MEM_TABLE, &table(8, 4096), &files);
    }),
    ("tells of its memory again and again", |it| {
        for _ in 0..20 {
            let files: Vec<Shared> = (0..8).map(|_| Shared::new(4096)).collect();
            let numbers: Vec<RawFd> = files.iter().map(|one| one.file.as_raw_fd()).collect();
            it.send(SET_MEM_TABLE, &table(8, 4096), &numbers);
        }
    }),
    ("sends strange descriptors for calls", |it| {
        for number in [1, 8, 3] {
            it.send(SET_BACKEND_REQUESTS, &[], &it.strange_ones(number));
        }
    }),
    ("sends descriptors with what needs none", |it| {
        for request in [GET_FEATURES, 15, 17, 18, 24, KICK, 40] {
            it.send(request, &[0; 16], &it.strange_ones(8));
        }
    }),
    ("does not read its answers", |it| {
        for _ in 0..3000 {
            it.send(GET_FEATURES, &[], &it.strange_ones(1));
        }
    }),
    ("takes its memory away and speaks of it", |it| {
        it.output(1 + it.below(LIAR_PORTS), 100, 1);
        it.memories
            .iter()
            .for_each(|memory| memory.shorten(it.below(4096) as u64));
        it.kick(1 + it.below(LIAR_PORTS));
    }),
    ("takes its memory away as it is read", |it| {
        let device = 1 + it.below(LIAR_PORTS);
        it.output(device, 1500, 256);
        it.kick(device);
        it.memories[device].shorten(0);
        it.kick(device);
    }),
    ("sends frames that are under way when it ends", |it| {
        for _ in 0..4 {
            it.output(1, 1500, 200);
            it.kick(1);
            it.output(2, 60_000, 30);
            it.kick(2);
        }
    }),
    ("puts out much, and does not wait until it is read", |it| {
        for _ in 0..200 {
            it.output(0, 4096, 256);
            it.kick(0);
        }
    }),
    ("sends what is no message on its calendar", |it| {
        let message = [it.below(99) as u32, 7, 0, 0]
            .map(u32::to_ne_bytes)
            .concat();
        let part = &message[..1 + it.below(16)];
        let files = it.strange_ones(1 + it.below(200));
        let _ = write_with(&it.kernel.calendar, part, &files, MsgFlags::MSG_DONTWAIT);
    }),
    ("reports twice, or ends a turn twice", |it| {
        for op in [START, WAIT, START, WAIT] {
            it.kernel.tell(op);
        }
    }),
    ("writes nonsense to its page and its control line", |it| {
        if let Some(page) = &it.kernel.page {
            (0..60).for_each(|_| {
                let at = it
                    .chance
                    .borrow_mut()
                    .pick(&[8, 16, OWN, OWN + 8, NOTES, NOTES + 8]);
                page.put(
                    at + it.below(8),
                    &it.chance.borrow_mut().number().to_ne_bytes(),
                );
            });
        }
        let files = it.strange_ones(50);
        let _ = write_with(&it.kernel.line, &[9; 500], &files, MsgFlags::MSG_DONTWAIT);
        it.kernel.tell(WAIT);
    }),
    ("closes one socket before the others", |it| {
        let all = [&it.kernel.calendar, &it.kernel.line];
        let all: Vec<&OwnedFd> = all.into_iter().chain(&it.kernel.devices).collect();
        // SAFETY: shutdown(2) of a socket.
        unsafe { libc::shutdown(all[it.below(all.len())].as_raw_fd(), libc::SHUT_RDWR) };
        it.kick(it.below(1 + LIAR_PORTS));
    }),
    ("leads into a circle, and to what it has not", |it| {
        let device = it.below(1 + LIAR_PORTS);
        it.output(device, 100, 1);
        it.memories[device].put(QUEUE + 12, &[1, 0, it.below(3) as u8, 0]);
        it.memories[device].put(QUEUE + 16, &it.chance.borrow_mut().number().to_ne_bytes());
        it.kick(device);
    }),
];

/// A message's table of so many regions of that size, one behind the other.
fn table(regions: usize, bytes: u64) -> Vec<u8> {
    let all = (0..regions as u64).flat_map(|index| [index * bytes, bytes, 0, 0]);
    let mut table = vec![regions as u8, 0, 0, 0, 0, 0, 0, 0];
    table.extend(all.flat_map(u64::to_ne_bytes));
    table
}

fn region_at(address: u64, bytes: u64, offset: u64) -> Vec<u8> {
    let mut table = vec![1, 0, 0, 0, 0, 0, 0, 0];
    table.extend(
        [address, bytes, 0, offset]
            .into_iter()
            .flat_map(u64::to_ne_bytes),
    );
    table
}

impl Ending<'_> {
    fn below(&self, bound: usize) -> usize {
        self.chance.borrow_mut().below(bound)
    }

    fn strange_ones(&self, number: usize) -> Vec<RawFd> {
        let one = |_| self.strange[self.below(self.strange.len())].as_raw_fd();
        (0..number).map(one).collect()
    }

    fn some_request(&self) -> u32 {
        self.chance.borrow_mut().pick(&[
            GET_FEATURES,
            SET_MEM_TABLE,
            8,
            16,
            SET_BACKEND_REQUESTS,
            24,
            KICK,
            99,
        ])
    }

    /// Send bytes to one of its devices, if the clock has room for them; what is not taken is as good.
    fn raw(&self, bytes: &[u8], files: &[RawFd]) {
        let device = &self.kernel.devices[self.below(1 + LIAR_PORTS)];
        let _ = write_with(device, bytes, files, MsgFlags::MSG_DONTWAIT);
    }

    fn send(&self, request: u32, payload: &[u8], files: &[RawFd]) {
        self.raw(&vhost(request, payload), files);
    }

    /// Make as many pieces of that length available in a device's output queue as `times` says.
    fn output(&self, device: usize, length: u32, times: u16) {
        let memory = &self.memories[device];
        let descriptor = [
            &(BUFFERS as u64).to_le_bytes()[..],
            &length.to_le_bytes(),
            &[0; 4],
        ];
        memory.put(QUEUE, &descriptor.concat());
        let used = u16::from_le_bytes(memory.get(QUEUE + USED + 2));
        memory.put(
            QUEUE + AVAILABLE + 2,
            &used.wrapping_add(times).to_le_bytes(),
        );
    }

    fn kick(&self, device: usize) {
        let payload = [1u32, 0].map(u32::to_ne_bytes).concat();
        let _ = write(&self.kernel.devices[device], &vhost(KICK, &payload));
    }

    /// Wait until the clock has read what it was sent.
    fn is_heard(&self) {
        let devices = &self.kernel.devices;
        await_that("it is heard", || !devices.iter().any(has_unread)).unwrap();
    }

    /// Come as far as that.
    fn come(&mut self, stage: usize) {
        if stage == 0 || !self.kernel.start() || stage == 1 {
            return;
        }
        for (device, memory) in self.memories.iter().enumerate() {
            for (request, payload) in Kernel::setup(MEMORY as u64, false) {
                let own = [memory.file.as_raw_fd()];
                let files = if request == SET_MEM_TABLE {
                    &own[..]
                } else {
                    &[]
                };
                let message = vhost(request, &payload);
                let _ = write_with(
                    &self.kernel.devices[device],
                    &message,
                    files,
                    MsgFlags::empty(),
                );
            }
        }
        if stage > 2 {
            self.memories[0].put(BUFFERS, HELLO);
            self.output(0, HELLO.len() as u32, 1);
            self.kick(0);
        }
    }
}

/// Wait until it is so: an error with `what` if it is not so for long.
fn await_that(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), String> {
    let since = Instant::now();
    while !is_so() {
        if since.elapsed() > 8 * LONGEST {
            return Err(format!("{what}: not within {:?}", 8 * LONGEST));
        }
        thread::sleep(Duration::from_micros(50));
    }
    Ok(())
}

fn states(client: &mut Client) -> Vec<Value> {
    let answer = client
        .ask(json!({"op": "hosts"}))
        .expect("the clock answers");
    answer["hosts"].as_array().unwrap().clone()
}

/// The clock of a lab with others in it, which go on, and a client.
struct Running {
    clock: Clock,
    others: Others,
    client: Client,
    directory: PathBuf,
}

impl Running {
    fn new(name: &str, most_data: u64) -> Running {
        let program = env::var("CLOCK").unwrap_or_else(|_| env!("CARGO_BIN_EXE_clock").into());
        let directory = env::temp_dir().join(format!("starts-{}-{name}", std::process::id()));
        let clock = start(
            &program,
            &lab(Some(100_000_000)),
            directory.clone(),
            most_data,
        );
        let others = company(&clock);
        let client = clock.client();
        Running {
            clock,
            others,
            client,
            directory,
        }
    }

    /// A kernel of the third host that has come up, with its turn.
    fn liar<'a>(&self, chance: &'a RefCell<Chance>, strange: &'a [OwnedFd]) -> Ending<'a> {
        let mut liar = Ending {
            kernel: Kernel::new(&self.clock, LIAR, LIAR_PORTS),
            memories: (0..=LIAR_PORTS).map(|_| Shared::new(MEMORY)).collect(),
            chance,
            strange,
        };
        liar.come(STAGES - 1);
        liar.is_heard();
        liar
    }

    fn log(&self) -> String {
        read_to_string(self.directory.join("log")).unwrap()
    }

    /// Until nothing of the third host is on the clock.
    fn await_its_end(&mut self) -> Result<(), String> {
        await_that("the clock reads its orders", || self.clock.has_its_orders())?;
        await_that("the host is off the clock", || {
            states(&mut self.client)[LIAR]["state"] == "absent"
        })
    }

    /// It may not have closed yet what somebody has just left.
    fn await_that_it_holds(&self, what: &Holds, told: &str) {
        let holds = || Holds::of(&self.clock);
        let _ = await_that("it holds that", || holds() == *what);
        assert_eq!(holds(), *what, "after {told}");
    }

    /// The other kernels have their turns, a new client is answered, and the clock still runs.
    fn await_others(&mut self) -> Result<(), String> {
        let answer = self.clock.client().ask(json!({"op": "now"}));
        if answer.is_none_or(|answer| answer["now_ns"].as_u64() == Some(0)) {
            return Err(format!("no answer; the clock said {}", self.log()));
        }
        let turns = || self.others.turns.load(Ordering::Relaxed);
        let before = turns();
        let waited = await_that("the others have turns", || turns() > before + 10);
        match self.clock.process.try_wait().unwrap() {
            Some(how) => Err(format!("the clock ended: {how}; it said {}", self.log())),
            None => waited,
        }
    }

    fn end(self) {
        self.others.over.store(true, Ordering::Relaxed);
        self.clock.end();
        for thread in self.others.threads {
            thread.join().expect("it ends").unwrap();
        }
        let _ = std::fs::remove_dir_all(self.directory);
    }
}

#[test]
fn the_clock_holds_what_it_held_before_however_kernels_end() {
    let (starts, seed) = (given("STARTS", 100), given("SEED", 1));
    let chance = RefCell::new(Chance(seed));
    let strange = strange();
    let mut running = Running::new("held", 64 * MB + 17 * LIAR_PORTS as u64 * MB);
    // Once, so that what is made for the first kernel is not taken for something that is left.
    drop(running.liar(&chance, &strange));
    running.await_its_end().unwrap();
    running.await_others().unwrap();
    let (before, private, memory) = (
        Holds::of(&running.clock),
        private_mappings(&running.clock),
        running.clock.anonymous(),
    );
    let (mut named, mut most, began) = (0, 0, Instant::now());
    let mut at_once = BTreeMap::<&str, u64>::new();
    for number in 0..starts {
        let (name, way) = WAYS[number as usize % WAYS.len()];
        let stage = (number as usize / WAYS.len() + chance.borrow_mut().below(2)) % STAGES;
        let told = format!("start {number} of seed {seed}, which {name} at stage {stage}");
        let mut liar = Ending {
            kernel: Kernel::new(&running.clock, LIAR, LIAR_PORTS),
            memories: (0..=LIAR_PORTS).map(|_| Shared::new(MEMORY)).collect(),
            chance: &chance,
            strange: &strange,
        };
        liar.come(stage);
        way(&liar);
        // Of some the clock hears first that they are gone.
        if !chance.borrow_mut().one_in(4) {
            liar.is_heard();
        }
        *at_once.entry(name).or_default() += 1;
        // Some are replaced by the next one while they are still there.
        let replaced = chance.borrow_mut().one_in(5).then_some(liar);
        let next = replaced.map(|liar| (Kernel::new(&running.clock, LIAR, LIAR_PORTS), liar));
        drop(next);
        running
            .await_its_end()
            .and_then(|()| running.await_others())
            .unwrap_or_else(|wrong| panic!("{wrong}, after {told}; it said {}", running.log()));
        named += running.clock.lost().len();
        most = most.max(running.clock.anonymous());
        if number % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 {
            running.await_that_it_holds(&before, &told);
            assert!(
                private_mappings(&running.clock) <= private + MOST_PRIVATE,
                "after {told}"
            );
            // Frames that are still under way take memory until they arrive.
            await_that("its memory is free again", || {
                running.clock.anonymous() < memory + MOST_GROWTH
            })
            .unwrap_or_else(|wrong| panic!("{wrong}, after {told}"));
        }
    }
    println!(
        "{}",
        json!({"starts": starts, "seed": seed, "ways": at_once.len(), "named": named, "holds": format!("{before:?}"),
            "memory_before": memory, "memory_after": running.clock.anonymous(), "memory_most": most,
            "seconds": began.elapsed().as_secs()})
    );
    running.end();
}

/// Limit how many files the clock may have open: no more than it has, or `most`.
fn limit_files(clock: &Clock, most: Option<u64>) {
    let numbers = read_dir(proc_of(clock).join("fd")).unwrap().map(|file| {
        let name = file.unwrap().file_name();
        name.to_str().unwrap().parse::<u64>().unwrap()
    });
    let used: Vec<u64> = numbers.collect();
    let free = (0..).find(|number| !used.contains(number)).unwrap();
    let limit = libc::rlimit {
        rlim_cur: most.unwrap_or(free),
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: it reads two numbers, and writes none.
    unsafe {
        let mut now: libc::rlimit = std::mem::zeroed();
        let id = clock.process.id() as libc::pid_t;
        Errno::result(libc::prlimit(
            id,
            libc::RLIMIT_NOFILE,
            std::ptr::null(),
            &mut now,
        ))
        .unwrap();
        let limit = libc::rlimit {
            rlim_max: now.rlim_max,
            ..limit
        };
        Errno::result(libc::prlimit(
            id,
            libc::RLIMIT_NOFILE,
            &limit,
            std::ptr::null_mut(),
        ))
        .unwrap();
    }
}

#[test]
fn the_clock_goes_on_where_it_may_open_no_more_files_and_has_clients_and_kernels_again_later() {
    const WHY: &str = "the clock may open no more files, and needs its descriptors";
    let (chance, strange) = (RefCell::new(Chance(1)), strange());
    let mut running = Running::new("limit", 256 * MB);
    // Time begins when all hosts have been started.
    drop(running.liar(&chance, &strange));
    running.await_its_end().unwrap();
    running.await_others().unwrap();
    let before = Holds::of(&running.clock);
    // One kernel that is up sends a descriptor, and the next one is about to start.
    let liar = running.liar(&chance, &strange);
    limit_files(&running.clock, None);
    let memory = [liar.memories[0].file.as_raw_fd()];
    liar.send(SET_MEM_TABLE, &table(1, 4096), &memory);
    running.await_its_end().unwrap();
    limit_files(&running.clock, None);
    let kernel = Kernel::new(&running.clock, LIAR, LIAR_PORTS);
    running.await_its_end().unwrap();
    let lost = running.clock.lost();
    assert_eq!(lost.len(), 2, "{lost:?}");
    for one in &lost {
        assert_eq!((&one["host"], &one["why"]), (&json!(LIAR), &json!(WHY)));
    }
    assert_eq!(states(&mut running.client)[LIAR]["lost"], WHY);
    drop((liar, kernel));
    let mut waiting = running.clock.client();
    await_that("it says so", || {
        let says = "clock: new clients wait until it may open more files";
        running.log().contains(says)
    })
    .unwrap();
    let turns = running.others.turns.load(Ordering::Relaxed);
    await_that("the others go on", || {
        running.others.turns.load(Ordering::Relaxed) > turns + 10
    })
    .unwrap();
    running.await_that_it_holds(&before, "two kernels that were lost");
    limit_files(&running.clock, Some(1 << 10));
    // Both of them: the one that has waited, and another start.
    assert_eq!(states(&mut waiting)[0]["name"], "first");
    drop(waiting);
    let liar = running.liar(&chance, &strange);
    await_that("it comes up", || {
        states(&mut running.client)[LIAR]["state"] == "running"
    })
    .unwrap();
    drop(liar);
    running.await_its_end().unwrap();
    running.await_others().unwrap();
    running.await_that_it_holds(&before, "a start with room again");
    assert_eq!(running.log().matches("new clients wait").count(), 1);
    running.end();
}

/// With nothing else to do it sleeps. It used to end; had it tried again at once, it would have used two hundred ticks.
#[test]
fn a_client_that_waits_for_a_descriptor_takes_no_processor() {
    let lab = json!({"epoch_ns": 1u64 << 60, "hosts": [], "links": [], "wires": []});
    let program = env::var("CLOCK").unwrap_or_else(|_| env!("CARGO_BIN_EXE_clock").into());
    let directory = env::temp_dir().join(format!("starts-{}-sleeps", std::process::id()));
    let clock = start(&program, &lab, directory.clone(), 64 * MB);
    let mut served = clock.client();
    let now = json!({"op": "now"});
    served.ask(now.clone()).expect("it runs");
    limit_files(&clock, None);
    let mut waiting = clock.client();
    let before = processor_ticks(&clock);
    thread::sleep(Duration::from_secs(2));
    assert!(processor_ticks(&clock) - before < 50);
    served.ask(now.clone()).expect("it still answers");
    // A descriptor becomes free, and the client need not wait for longer.
    drop(served);
    waiting.ask(now).expect("it is accepted");
    clock.end();
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn output_that_nobody_reads_is_no_more_than_a_kernel_may_have_the_clock_keep() {
    let (chance, strange) = (RefCell::new(Chance(1)), strange());
    let mut running = Running::new("output", 64 * MB);
    let liar = running.liar(&chance, &strange);
    let memory = &liar.memories[0];
    // An agent's frames of 4 KiB, so that its bytes are no lie.
    let frame = [&7u32.to_be_bytes()[..], &[5], &4087u32.to_be_bytes()].concat();
    for _ in 0..200 {
        liar.is_heard();
        memory.put(BUFFERS, &frame);
        liar.output(0, 4096, 256);
        liar.kick(0);
    }
    running.await_its_end().unwrap();
    running.await_others().unwrap();
    assert_eq!(
        running.clock.lost()[0]["why"],
        "it does not wait until what it has put out is read"
    );
    running.end();
}

/// A kernel sends 10,240 frames of 1500 bytes in one turn: twice as many bytes in hexadecimal.
#[test]
fn captured_frames_of_a_turn_that_lasts_are_not_kept_until_it_ends() {
    let (chance, strange) = (RefCell::new(Chance(1)), strange());
    let mut running = Running::new("capture", 300 * MB);
    let liar = running.liar(&chance, &strange);
    let mut capturing = running.clock.client();
    // It is answered between two windows: the liar ends its turn, and has its next one in another window.
    capturing.tell(json!({"op": "capture"}));
    liar.kernel.wait(Some(liar.kernel.time() + 100 * STEP_NS));
    capturing.answer().expect("it captures");
    let reading = thread::spawn(move || while capturing.answer().is_some() {});
    await_that("it has its turn", || {
        states(&mut running.client)[LIAR]["state"] == "running"
    })
    .unwrap();
    let before = running.clock.anonymous();
    for _ in 0..40 {
        liar.output(1, 12 + 1500, 256);
        liar.kick(1);
        liar.is_heard();
    }
    await_that("they are told of", || {
        running.clock.anonymous() < before + 8 * MB
    })
    .unwrap();
    drop(liar);
    running.await_its_end().unwrap();
    running.await_others().unwrap();
    running.end();
    reading.join().unwrap();
}
