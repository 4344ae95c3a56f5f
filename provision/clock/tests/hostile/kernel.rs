//! The running clock, and kernels that speak to it as User-Mode Linux does, or otherwise.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, IoSlice, IoSliceMut, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
use nix::sys::mman::{mmap, munmap, MapFlags, ProtFlags};
use nix::sys::socket::{
    recvmsg, send, sendmsg, socketpair, AddressFamily, ControlMessage, ControlMessageOwned,
    MsgFlags, SockFlag, SockType, UnixAddr,
};
use serde_json::{json, Value};

pub const START: u32 = 1;
pub const WAIT: u32 = 3;
pub const OWN: usize = 4096;
pub const NOTES: usize = OWN + 128;
pub const SENT_COUNT: usize = NOTES + 8;
pub const DUE_COUNT: usize = NOTES + 12;
pub const DUE_TAKEN: usize = NOTES + 16;
pub const PAGE: usize = NOTES + 24 + 16 * 256 * 2;
pub const HELLO: &[u8] = b"\x00minigts agent 1\x00";
pub const QUEUE: usize = 0x10000;
pub const AVAILABLE: usize = 0x2000;
pub const USED: usize = 0x4000;
pub const BUFFERS: usize = 0x80000;
const QUEUE_ENTRIES: u32 = 256;
/// What one client does on its own, beside which no other has a turn.
pub const NO_TURN: u64 = 0;

pub struct Clock {
    pub process: Child,
    control: OwnedFd,
    pub path: PathBuf,
}

/// Of what the clock may be given: `program` to run instead of the crate's own, and how much data it may have.
pub fn start(program: &str, lab: &Value, directory: PathBuf, most_data: u64) -> Clock {
    std::fs::create_dir_all(&directory).unwrap();
    let (order, path) = (directory.join("lab"), directory.join("s"));
    std::fs::write(&order, serde_json::to_vec(lab).unwrap()).unwrap();
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let (control, theirs) = pair(SockType::SeqPacket);
    let inherited = [theirs.as_raw_fd(), listener.as_raw_fd()];
    let mut command = Command::new(program);
    command
        .arg(&order)
        .args(inherited.map(|fd| fd.to_string()))
        .stdin(Stdio::null());
    command.stderr(File::create(directory.join("log")).unwrap());
    // SAFETY: calls that are safe between fork and exec.
    unsafe {
        command.pre_exec(move || {
            inherited.iter().for_each(|fd| {
                libc::fcntl(*fd, libc::F_SETFD, 0);
            });
            let limit = libc::rlimit {
                rlim_cur: most_data,
                rlim_max: most_data,
            };
            libc::setrlimit(libc::RLIMIT_DATA, &limit);
            Ok(())
        });
    }
    Clock {
        process: command.spawn().unwrap(),
        control,
        path,
    }
}

impl Clock {
    pub fn client(&self) -> Client {
        let stream = UnixStream::connect(&self.path).unwrap();
        Client {
            answers: BufReader::new(stream.try_clone().unwrap()),
            stream,
        }
    }

    /// What the process holds that is no file's, in bytes.
    pub fn anonymous(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))
            .unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("RssAnon"));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
            .unwrap_or(0)
            << 10
    }

    /// What it has told its supervisor of hosts that it has ended, since this was last called.
    pub fn lost(&self) -> Vec<Value> {
        let mut bytes = [0; 4096];
        std::iter::from_fn(|| {
            match read_with(&self.control, &mut bytes, MsgFlags::MSG_DONTWAIT).0 {
                Read::Bytes(count) => Some(serde_json::from_slice(&bytes[..count]).unwrap()),
                _ => None,
            }
        })
        .collect()
    }

    /// Whether the clock has read the orders of its supervisor.
    pub fn has_its_orders(&self) -> bool {
        !has_unread(&self.control)
    }

    pub fn end(mut self) {
        drop(self.control);
        self.process.wait().unwrap();
    }
}

pub struct Client {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Client {
    pub fn ask(&mut self, question: Value) -> Option<Value> {
        self.tell(question)?;
        self.answer()
    }

    pub fn tell(&mut self, question: Value) -> Option<()> {
        let line = format!("{question}\n");
        self.stream.write_all(line.as_bytes()).ok()
    }

    pub fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

/// What the clock answers; it has to be no error.
pub fn ask(client: &mut Client, question: Value) -> Value {
    let answer = client.ask(question).expect("the clock answers");
    assert_eq!(answer.get("error"), None);
    answer
}

/// Let the lab's time come to `until_ns`, at which it stands again.
pub fn sleep(client: &mut Client, until_ns: u64) {
    let question = json!({"op": "sleep", "until_ns": until_ns, "turn": NO_TURN});
    let answer = ask(client, question);
    assert_eq!(answer["now_ns"], json!(until_ns), "{answer}");
}

fn pair(kind: SockType) -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC).unwrap()
}

/// Memory of a file that two processes share.
pub struct Shared {
    pub file: File,
    memory: NonNull<u8>,
    length: usize,
    /// Whether the file has been made shorter than the mapping, which then must not be touched.
    shortened: Cell<bool>,
}

// SAFETY: it is moved with its kernel, and used by one thread at a time.
unsafe impl Send for Shared {}

impl Shared {
    pub fn new(length: usize) -> Shared {
        let file = File::from(memfd_create(c"memory", MemFdCreateFlag::MFD_CLOEXEC).unwrap());
        file.set_len(length as u64).unwrap();
        Shared::of(file, length)
    }

    pub fn of(file: File, length: usize) -> Shared {
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping of that file.
        let memory = unsafe {
            mmap(
                None,
                length.try_into().unwrap(),
                both,
                MapFlags::MAP_SHARED,
                &file,
                0,
            )
            .unwrap()
        };
        Shared {
            file,
            memory: memory.cast(),
            length,
            shortened: Cell::new(false),
        }
    }

    pub fn shorten(&self, length: u64) {
        self.shortened.set(true);
        self.file.set_len(length).unwrap();
    }

    pub fn put(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.length);
        if self.shortened.get() {
            self.file.write_all_at(bytes, at as u64).unwrap();
            return;
        }
        // SAFETY: within the mapping.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory.as_ptr().add(at), bytes.len())
        }
    }

    pub fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        assert!(at + N <= self.length);
        let mut bytes = [0; N];
        if self.shortened.get() {
            let _ = self.file.read_at(&mut bytes, at as u64).unwrap();
            return bytes;
        }
        // SAFETY: within the mapping.
        unsafe {
            std::ptr::copy_nonoverlapping(self.memory.as_ptr().add(at), bytes.as_mut_ptr(), N)
        };
        bytes
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: it was mapped so.
        let _ = unsafe { munmap(self.memory.cast(), self.length) };
    }
}

/// What came of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    Nothing,
    Gone,
    Bytes(usize),
}

pub struct Kernel {
    pub calendar: OwnedFd,
    pub line: OwnedFd,
    /// The console, then the ports.
    pub devices: Vec<OwnedFd>,
    pub page: Option<Shared>,
}

impl Kernel {
    pub fn new(clock: &Clock, host: usize, ports: usize) -> Kernel {
        let (ours, theirs): (Vec<_>, Vec<_>) =
            (0..3 + ports).map(|_| pair(SockType::Stream)).unzip();
        let numbers: Vec<RawFd> = theirs.iter().map(AsRawFd::as_raw_fd).collect();
        let order = json!({"host": host}).to_string();
        write_with(
            &clock.control,
            order.as_bytes(),
            &numbers,
            MsgFlags::empty(),
        )
        .unwrap();
        let mut ours = ours.into_iter();
        let (calendar, line) = (ours.next().unwrap(), ours.next().unwrap());
        Kernel {
            calendar,
            line,
            devices: ours.collect(),
            page: None,
        }
    }

    pub fn tell(&self, op: u32) -> bool {
        let message = [op.to_ne_bytes(), 7u32.to_ne_bytes(), [0; 4], [0; 4]].concat();
        write_with(&self.calendar, &message, &[], MsgFlags::MSG_DONTWAIT).is_ok()
    }

    /// Report, and wait for the first turn, with which the page comes. False when the clock has closed.
    pub fn start(&mut self) -> bool {
        if !self.tell(START) {
            return false;
        }
        let mut bytes = [0; 16];
        let (read, files) = read_with(&self.calendar, &mut bytes, MsgFlags::empty());
        let Some(page) = files.into_iter().next() else {
            return false;
        };
        let page = Shared::of(File::from(page), PAGE);
        page.put(OWN, &1u32.to_ne_bytes());
        self.page = Some(page);
        read == Read::Bytes(16)
    }

    pub fn page(&self) -> &Shared {
        self.page.as_ref().expect("it has started")
    }

    pub fn time(&self) -> u64 {
        u64::from_ne_bytes(self.page().get(16))
    }

    pub fn wait(&self, request: Option<u64>) -> bool {
        self.page()
            .put(OWN + 4, &u32::from(request.is_some()).to_ne_bytes());
        if let Some(request) = request {
            self.page().put(OWN + 8, &request.to_ne_bytes());
        }
        self.tell(WAIT)
    }

    /// All that sets a device up, each message as it is to be. `replies`: each is answered before the next is sent.
    pub fn setup(memory_bytes: u64, replies: bool) -> Vec<(u32, Vec<u8>)> {
        let mut messages = vec![(16, (u64::from(replies) << 3).to_ne_bytes().to_vec())];
        let table = [1u32.to_ne_bytes().to_vec(), [0; 4].to_vec()].concat();
        let region = [0u64, memory_bytes, 0, 0].map(u64::to_ne_bytes).concat();
        messages.push((5, [table, region].concat()));
        for queue in 0..2u32 {
            let pair = |value: u32| [queue.to_ne_bytes(), value.to_ne_bytes()].concat();
            let base = QUEUE as u64 * u64::from(queue);
            let addresses = [base, base + USED as u64, base + AVAILABLE as u64, 0]
                .map(u64::to_ne_bytes)
                .concat();
            messages.push((8, pair(QUEUE_ENTRIES)));
            messages.push((10, pair(0)));
            messages.push((9, [pair(0), addresses].concat()));
            messages.push((18, pair(1)));
        }
        messages
    }
}

pub fn vhost(request: u32, payload: &[u8]) -> Vec<u8> {
    let head = [request, 1 | 8, payload.len() as u32]
        .map(u32::to_ne_bytes)
        .concat();
    [&head, payload].concat()
}

pub fn write(fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    send(
        fd.as_raw_fd(),
        bytes,
        MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
    )
}

/// Whether the other side has something to read yet.
pub fn has_unread(fd: &OwnedFd) -> bool {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes a number there.
    unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) == 0 && bytes > 0 }
}

pub fn write_with(
    fd: &OwnedFd,
    bytes: &[u8],
    files: &[RawFd],
    flags: MsgFlags,
) -> Result<usize, Errno> {
    let rights = [ControlMessage::ScmRights(files)];
    let rights = if files.is_empty() { &[] } else { &rights[..] };
    sendmsg::<UnixAddr>(
        fd.as_raw_fd(),
        &[IoSlice::new(bytes)],
        rights,
        flags | MsgFlags::MSG_NOSIGNAL,
        None,
    )
}

pub fn read_with(fd: &OwnedFd, bytes: &mut [u8], flags: MsgFlags) -> (Read, Vec<OwnedFd>) {
    let mut space = nix::cmsg_space!([RawFd; 8]);
    let mut parts = [IoSliceMut::new(bytes)];
    match recvmsg::<UnixAddr>(
        fd.as_raw_fd(),
        &mut parts,
        Some(&mut space),
        flags | MsgFlags::MSG_CMSG_CLOEXEC,
    ) {
        Err(Errno::EAGAIN | Errno::EINTR) => (Read::Nothing, Vec::new()),
        Err(_) => (Read::Gone, Vec::new()),
        Ok(message) => {
            let mut files = Vec::new();
            for part in message.cmsgs().unwrap() {
                if let ControlMessageOwned::ScmRights(numbers) = part {
                    // SAFETY: they have just been made for this process.
                    files.extend(
                        numbers
                            .into_iter()
                            .map(|number| unsafe { OwnedFd::from_raw_fd(number) }),
                    );
                }
            }
            (
                if message.bytes == 0 {
                    Read::Gone
                } else {
                    Read::Bytes(message.bytes)
                },
                files,
            )
        }
    }
}

/// An honest device: its memory, with 256 buffers for input that are given back as they are used.
pub struct Card {
    pub memory: Shared,
}

impl Card {
    pub fn new(kernel: &Kernel, device: usize) -> Card {
        let memory = Shared::new(2 << 20);
        for (request, payload) in Kernel::setup(2 << 20, true) {
            let file = [memory.file.as_raw_fd()];
            let files = if request == 5 { &file[..] } else { &[] };
            write_with(
                &kernel.devices[device],
                &vhost(request, &payload),
                files,
                MsgFlags::empty(),
            )
            .unwrap();
            let mut answer = [0; 64];
            assert!(matches!(
                read_with(&kernel.devices[device], &mut answer, MsgFlags::empty()).0,
                Read::Bytes(20)
            ));
        }
        for index in 0..256usize {
            let descriptor = [(BUFFERS + index * 2048) as u64, 2048 | 2 << 32]
                .map(u64::to_le_bytes)
                .concat();
            memory.put(16 * index, &descriptor);
            memory.put(AVAILABLE + 4 + 2 * index, &(index as u16).to_le_bytes());
        }
        let card = Card { memory };
        card.give_back();
        card
    }

    pub fn give_back(&self) {
        let used = u16::from_le_bytes(self.memory.get(USED + 2));
        self.memory
            .put(AVAILABLE + 2, &used.wrapping_add(256).to_le_bytes());
    }

    /// Say something on the console.
    pub fn say(&self, kernel: &Kernel, text: &[u8]) {
        self.memory.put(BUFFERS, text);
        self.memory.put(
            QUEUE,
            &[BUFFERS as u64, text.len() as u64]
                .map(u64::to_le_bytes)
                .concat(),
        );
        let sent = u16::from_le_bytes(self.memory.get(QUEUE + USED + 2));
        self.memory
            .put(QUEUE + AVAILABLE + 2, &sent.wrapping_add(1).to_le_bytes());
        write(
            &kernel.devices[0],
            &vhost(35, &[1u32, 0].map(u32::to_ne_bytes).concat()),
        )
        .unwrap();
        let mut answer = [0; 64];
        assert!(matches!(
            read_with(&kernel.devices[0], &mut answer, MsgFlags::empty()).0,
            Read::Bytes(20)
        ));
    }
}
