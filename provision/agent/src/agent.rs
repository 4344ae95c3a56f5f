//! Reads requests from the control line, runs their commands side by side, and writes the commands' output to the line.

use crate::command::{Command, Request};
use crate::light::Place;
use crate::system::done;
use crate::wire;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::path::PathBuf;
use std::time::Instant;

/// How many bytes of output are still read of each kind after a command has ended. A daemon that it left behind may write there
/// for ever.
const LEFT_BYTES: usize = 1 << 20;
/// The exit code of a command that could not be started, as a shell has it.
const NOT_FOUND: u8 = 127;

/// What is ready to be served.
enum Ready {
    /// The line has requests.
    Requests,
    /// Children have ended.
    Children,
    /// The command of that channel has put something out, of that kind.
    Output(u32, u8),
    /// The command of that channel takes more input.
    Input(u32),
}

pub struct Agent {
    requests: File,
    answers: File,
    /// The control group in which each command gets one of its own.
    groups: PathBuf,
    /// Readable when children have ended.
    children: File,
    decoder: wire::Decoder,
    /// The commands that run, by channel.
    commands: BTreeMap<u32, Command>,
}

impl Agent {
    pub fn new(requests: File, answers: File, groups: PathBuf) -> io::Result<Agent> {
        let commands = BTreeMap::new();
        Ok(Agent {
            requests,
            answers,
            groups,
            children: ends_of_children()?,
            decoder: wire::Decoder::default(),
            commands,
        })
    }

    /// Serve until the line ends. Then all commands are ended.
    pub fn serve(mut self) -> io::Result<()> {
        loop {
            for ready in self.wait()? {
                match ready {
                    Ready::Requests => {
                        if !self.take_requests()? {
                            self.commands.values().for_each(Command::kill);
                            return Ok(());
                        }
                    }
                    Ready::Children => self.collect()?,
                    Ready::Output(channel, kind) => drop(self.pass_on(channel, kind)?),
                    Ready::Input(channel) => self
                        .commands
                        .get_mut(&channel)
                        .into_iter()
                        .for_each(Command::feed),
                }
            }
            self.end_overdue();
        }
    }

    fn wait(&self) -> io::Result<Vec<Ready>> {
        let watch = |descriptor, events| libc::pollfd {
            fd: descriptor,
            events,
            revents: 0,
        };
        let mut watched = vec![
            watch(self.requests.as_raw_fd(), libc::POLLIN),
            watch(self.children.as_raw_fd(), libc::POLLIN),
        ];
        let mut meant = vec![Ready::Requests, Ready::Children];
        for (channel, command) in &self.commands {
            for (kind, file) in &command.outputs {
                watched.push(watch(file.as_raw_fd(), libc::POLLIN));
                meant.push(Ready::Output(*channel, *kind));
            }
            if let Some(input) = command.waits_for() {
                watched.push(watch(input, libc::POLLOUT));
                meant.push(Ready::Input(*channel));
            }
        }
        poll(
            &mut watched,
            self.commands
                .values()
                .filter_map(|command| command.deadline)
                .min(),
        )?;
        Ok(meant
            .into_iter()
            .zip(watched)
            .filter(|(_, each)| each.revents != 0)
            .map(|(ready, _)| ready)
            .collect())
    }

    fn send(&mut self, channel: u32, kind: u8, payload: &[u8]) -> io::Result<()> {
        self.answers
            .write_all(&wire::encoded(channel, kind, payload))
    }

    /// Read requests and begin what they ask for. False when the line has ended.
    fn take_requests(&mut self) -> io::Result<bool> {
        let mut data = vec![0; 65536];
        let length = match self.requests.read(&mut data) {
            Ok(0) => return Ok(false),
            Ok(length) => length,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) =>
            {
                return Ok(true)
            }
            Err(error) => return Err(error),
        };
        self.send(0, wire::TAKEN, &(length as u32).to_be_bytes())?;
        for frame in self.decoder.feed(&data[..length]) {
            match (frame.kind, self.commands.get_mut(&frame.channel)) {
                (wire::RUN, None) => self.run(frame.channel, None, &frame.payload)?,
                (wire::RUN_WITHIN, None) => {
                    let (host, payload) = wire::named(&frame.payload);
                    self.run(frame.channel, Some(host), payload)?;
                }
                (wire::INPUT, Some(command)) => command.take(&frame.payload),
                (wire::KILL, Some(command)) => command.kill(),
                (wire::RESIZE, Some(command)) => command.resize(&frame.payload),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Run a command, in a light host if one is named.
    fn run(&mut self, channel: u32, host: Option<&[u8]>, payload: &[u8]) -> io::Result<()> {
        let group = self.groups.join(channel.to_string());
        let started = match Request::read(payload) {
            Some(request) => start(&request, host, group).map_err(|error| {
                format!("{}: {error}\n", String::from_utf8_lossy(&request.argv[0]))
            }),
            None => Err("this is no request\n".into()),
        };
        match started {
            Ok(command) => drop(self.commands.insert(channel, command)),
            Err(why) => {
                self.send(channel, wire::STDERR, why.as_bytes())?;
                self.send_exit(channel, NOT_FOUND, false)?;
            }
        }
        Ok(())
    }

    /// Write a command's output to the line. Returns how many bytes there were.
    fn pass_on(&mut self, channel: u32, kind: u8) -> io::Result<usize> {
        let data = self
            .commands
            .get_mut(&channel)
            .map_or_else(Vec::new, |command| command.read(kind));
        if !data.is_empty() {
            self.send(channel, kind, &data)?;
        }
        Ok(data.len())
    }

    fn end_overdue(&mut self) {
        let now = Instant::now();
        for command in self
            .commands
            .values_mut()
            .filter(|command| command.deadline.is_some_and(|moment| moment <= now))
        {
            (command.deadline, command.timed_out) = (None, true);
            command.kill();
        }
    }

    /// Collect the children that have ended, those included that other processes have left to process 1.
    fn collect(&mut self) -> io::Result<()> {
        let _ = self.children.read(&mut [0; 4096]);
        loop {
            let mut status = 0;
            let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
            if pid <= 0 {
                return Ok(());
            }
            let channel = self
                .commands
                .iter()
                .find(|(_, command)| command.pid == pid)
                .map(|(channel, _)| *channel);
            if let Some(channel) = channel {
                self.finish(channel, status)?;
            }
        }
    }

    /// A command has ended: pass on the rest of its output, and say how it ended. A daemon may still hold its pipes.
    fn finish(&mut self, channel: u32, status: libc::c_int) -> io::Result<()> {
        let kinds: Vec<u8> = self.commands[&channel]
            .outputs
            .iter()
            .map(|(kind, _)| *kind)
            .collect();
        for kind in kinds {
            let mut left = LEFT_BYTES;
            while let length @ 1.. = self.pass_on(channel, kind)? {
                left = left.saturating_sub(length);
                if left == 0 {
                    break;
                }
            }
        }
        let timed_out = self
            .commands
            .remove(&channel)
            .is_some_and(|command| command.timed_out);
        let code = if libc::WIFSIGNALED(status) {
            128 + libc::WTERMSIG(status)
        } else {
            libc::WEXITSTATUS(status)
        };
        self.send_exit(channel, code as u8, timed_out)
    }

    fn send_exit(&mut self, channel: u32, code: u8, timed_out: bool) -> io::Result<()> {
        self.send(
            channel,
            wire::EXIT,
            format!("{{\"code\": {code}, \"timeout\": {timed_out}}}").as_bytes(),
        )
    }
}

/// A descriptor that is readable when children have ended.
fn ends_of_children() -> io::Result<File> {
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGCHLD);
        done(libc::sigprocmask(
            libc::SIG_BLOCK,
            &signals,
            std::ptr::null_mut(),
        ))?;
        let descriptor = libc::signalfd(-1, &signals, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
        done(descriptor)?;
        Ok(File::from_raw_fd(descriptor as RawFd))
    }
}

/// Wait until one of these is ready, or that moment has come.
fn poll(watched: &mut [libc::pollfd], until: Option<Instant>) -> io::Result<()> {
    let left = until.map(|moment| {
        let left = moment.saturating_duration_since(Instant::now());
        libc::timespec {
            tv_sec: left.as_secs() as libc::time_t,
            tv_nsec: left.subsec_nanos() as libc::c_long,
        }
    });
    let left = left
        .as_ref()
        .map_or(std::ptr::null(), |left| left as *const _);
    let found = unsafe {
        libc::ppoll(
            watched.as_mut_ptr(),
            watched.len() as libc::nfds_t,
            left,
            std::ptr::null(),
        )
    };
    match done(found) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        result => result,
    }
}
fn start(request: &Request, host: Option<&[u8]>, group: PathBuf) -> io::Result<Command> {
    let place = host.map(|name| Place::find(&String::from_utf8_lossy(name)));
    Command::start(request, place.transpose()?.as_ref(), group)
}
