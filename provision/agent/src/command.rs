//! A command that runs, and the descriptors of its input and output.

use crate::json::Value;
use crate::light::{self, Place};
use crate::system::done;
use crate::wire;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant};

/// The environment of every command.
const ENVIRONMENT: [(&str, &str); 4] = [
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("HOME", "/root"),
    ("TERM", "xterm-256color"),
    ("LANG", "C.UTF-8"),
];
const HOME: &str = "/root";

/// What a client asks to be run: JSON {"argv": [...], "timeout_s": ..., "terminal": [ROWS, COLUMNS]}.
pub struct Request {
    /// At least one word.
    pub argv: Vec<Vec<u8>>,
    /// How long it may run; None: for ever.
    timeout: Option<Duration>,
    /// The size of the terminal that it runs on, in rows and columns; None: it runs on pipes.
    terminal: Option<[u16; 2]>,
}

impl Request {
    /// Read a request. None if it is none.
    pub fn read(payload: &[u8]) -> Option<Request> {
        let value = Value::read(payload)?;
        let words = value
            .of("argv")?
            .list()?
            .iter()
            .map(|word| word.bytes().map(<[u8]>::to_vec));
        let argv: Vec<_> = words.collect::<Option<_>>()?;
        let timeout_s = value
            .of("timeout_s")
            .and_then(Value::number)
            .filter(|seconds| *seconds != 0.0);
        let terminal = value.of("terminal").and_then(Value::list).and_then(size_of);
        (!argv.is_empty()).then_some(Request {
            argv,
            timeout: timeout_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            terminal,
        })
    }
}

fn size_of(words: &[Value]) -> Option<[u16; 2]> {
    match words {
        [rows, columns] => Some([rows.number()? as u16, columns.number()? as u16]),
        _ => None,
    }
}

pub struct Command {
    pub pid: libc::pid_t,
    /// When it is ended, if it still runs.
    pub deadline: Option<Instant>,
    /// Whether it was ended for that.
    pub timed_out: bool,
    /// The outputs that are still open, each with the kind of its frames.
    pub outputs: Vec<(u8, File)>,
    /// Its control group.
    group: PathBuf,
    /// None: it is closed.
    input: Option<File>,
    /// Input that the command has not taken yet.
    pending: VecDeque<u8>,
    /// Whether nothing follows `pending`.
    input_closed: bool,
    is_on_terminal: bool,
}

impl Command {
    /// Start a command in a new control group of that path, and in a light host's place if there is one.
    pub fn start(request: &Request, place: Option<&Place>, group: PathBuf) -> io::Result<Command> {
        fs::create_dir_all(&group)?;
        Command::start_in(request, place, &group).inspect_err(|_| drop(fs::remove_dir(&group)))
    }

    fn start_in(request: &Request, place: Option<&Place>, group: &Path) -> io::Result<Command> {
        let (input, outputs, pid) = match request.terminal {
            Some(size) => {
                let (master, slave) = terminal(size)?;
                let pid = spawn(
                    request,
                    place,
                    group,
                    [slave.try_clone()?, slave.try_clone()?, slave],
                )?;
                (
                    File::from(master.try_clone()?),
                    vec![(wire::STDOUT, File::from(master))],
                    pid,
                )
            }
            None => {
                let [(stdin, input), (output, stdout), (errors, stderr)] =
                    [pipe()?, pipe()?, pipe()?];
                let pid = spawn(request, place, group, [stdin, stdout, stderr])?;
                let outputs = vec![
                    (wire::STDOUT, File::from(output)),
                    (wire::STDERR, File::from(errors)),
                ];
                (File::from(input), outputs, pid)
            }
        };
        for descriptor in outputs.iter().map(|(_, file)| file).chain([&input]) {
            set_nonblocking(descriptor.as_raw_fd())?;
        }
        Ok(Command {
            pid,
            deadline: request
                .timeout
                .and_then(|timeout| Instant::now().checked_add(timeout)),
            timed_out: false,
            outputs,
            group: group.into(),
            input: Some(input),
            pending: VecDeque::new(),
            input_closed: false,
            is_on_terminal: request.terminal.is_some(),
        })
    }

    /// End the command and all that it has started.
    pub fn kill(&self) {
        // If the group is gone, there is nothing to end.
        let _ = fs::write(self.group.join("cgroup.kill"), "1");
    }

    /// Set the terminal's size, by JSON [ROWS, COLUMNS].
    pub fn resize(&self, payload: &[u8]) {
        let size = Value::read(payload).and_then(|value| value.list().and_then(size_of));
        if let (Some(size), Some(input)) = (size, &self.input) {
            // It fails if the command runs on pipes, which have no size.
            let _ = set_size(input.as_raw_fd(), size);
        }
    }

    /// Take more input for the command. An empty piece ends the input.
    pub fn take(&mut self, data: &[u8]) {
        self.pending.extend(data);
        self.input_closed |= data.is_empty();
        self.feed();
    }

    /// The descriptor that has to be writable before the command can take the rest of its input; None: there is no rest.
    pub fn waits_for(&self) -> Option<RawFd> {
        self.input
            .as_ref()
            .filter(|_| !self.pending.is_empty())
            .map(File::as_raw_fd)
    }

    /// Write as much input as the command takes now. The rest waits until the descriptor is writable again.
    pub fn feed(&mut self) {
        let Some(input) = &mut self.input else { return };
        while !self.pending.is_empty() {
            match input.write(self.pending.as_slices().0) {
                Ok(written) => drop(self.pending.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.pending.clear(),
            }
        }
        if self.input_closed && !self.is_on_terminal {
            self.input = None;
        }
    }

    /// Read the next output of that kind. Empty if there is none now. An output that has ended is closed.
    pub fn read(&mut self, kind: u8) -> Vec<u8> {
        let Some(index) = self.outputs.iter().position(|(each, _)| *each == kind) else {
            return Vec::new();
        };
        let mut data = vec![0; wire::CHUNK];
        match self.outputs[index].1.read(&mut data) {
            Ok(length) if length > 0 => {
                data.truncate(length);
                return data;
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            _ => drop(self.outputs.remove(index)),
        }
        Vec::new()
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        // It fails if a daemon is still in the group.
        let _ = fs::remove_dir(&self.group);
    }
}

/// Start the program. The child enters its control group before it becomes the program, so nothing that it starts is ever outside.
fn spawn(
    request: &Request,
    place: Option<&Place>,
    group: &Path,
    streams: [OwnedFd; 3],
) -> io::Result<libc::pid_t> {
    let member = OpenOptions::new()
        .write(true)
        .open(group.join("cgroup.procs"))?;
    let takes_terminal = request.terminal.is_some();
    let [stdin, stdout, stderr] = streams;
    let mut command = process::Command::new(OsStr::from_bytes(&request.argv[0]));
    command
        .args(request.argv[1..].iter().map(|word| OsStr::from_bytes(word)))
        .env_clear()
        .envs(ENVIRONMENT)
        .current_dir(HOME)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    let first = place.map(Place::copy).transpose()?;
    let prepare = move || {
        (&member).write_all(b"0")?;
        if let Some(place) = &first {
            place.enter(HOME)?;
        }
        unblock_signals()?;
        done(unsafe { libc::setsid() })?;
        if takes_terminal {
            done(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) })?;
        }
        Ok(())
    };
    unsafe { command.pre_exec(prepare) };
    let child = match place {
        Some(place) => {
            place.number_children()?;
            let child = command.spawn();
            light::number_children_as_own()?;
            child?
        }
        None => command.spawn()?,
    };
    Ok(child.id() as libc::pid_t)
}

/// Let the child have SIGCHLD, which shells wait for. It is blocked in the agent, which hears of children by a descriptor.
fn unblock_signals() -> io::Result<()> {
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        done(libc::sigprocmask(
            libc::SIG_SETMASK,
            &none,
            std::ptr::null_mut(),
        ))
    }
}

/// A new pipe's read end and write end.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    done(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// A new terminal's master and slave.
fn terminal(size: [u16; 2]) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    let master = unsafe { libc::posix_openpt(flags) };
    done(master)?;
    let master = unsafe { OwnedFd::from_raw_fd(master) };
    done(unsafe { libc::unlockpt(master.as_raw_fd()) })?;
    let slave = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags) };
    done(slave)?;
    set_size(master.as_raw_fd(), size)?;
    Ok((master, unsafe { OwnedFd::from_raw_fd(slave) }))
}

fn set_size(terminal: RawFd, [rows, columns]: [u16; 2]) -> io::Result<()> {
    let size = libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    done(unsafe { libc::ioctl(terminal, libc::TIOCSWINSZ, &size) })
}

fn set_nonblocking(descriptor: RawFd) -> io::Result<()> {
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    done(unsafe { libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK) })
}
