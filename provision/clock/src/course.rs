//! The course of a lab: a running hash over all that passes the clock, by which two labs are compared.
//!
//! Each host has two chains: of what came to it, and of what came from it. A chain goes on in the order of the lab's time,
//! whatever the order in which this machine serves the hosts, so its hash does not depend on the machine. No chain has
//! anything of another one in it: where two labs part, the first chain that differs names the host.
//!
//! A chain keeps a *mark* of its hash for each interval of the lab's time in which something was entered. Of a long lab
//! it keeps fewer: the interval doubles when there are too many. Between two moments, every entry may be recorded in a file.
//!
//! The hash is XXH3 with 128 bits: fast, with published test vectors, and for nobody who would forge a course.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// How many marks a chain keeps. When there are more, its interval doubles.
const MOST_MARKS: usize = 512;
/// How many bytes at the beginning of a frame are recorded, and of a piece of text.
const HEAD: usize = 128;
const HEAD_OF_TEXT: usize = 2048;
/// How many words an entry has at the most.
const WORDS: usize = 7;
/// The first line of a recording.
const RECORDING: &str = "minigts course 1";
const NS_PER_S: u64 = 1_000_000_000;

/// What the supervisor orders about the course.
#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Order {
    /// How far marks are apart at first, in nanoseconds; 1 s by default.
    pub every_ns: u64,
    /// From when on each entry is recorded, and until when, in nanoseconds.
    pub from_ns: u64,
    pub until_ns: u64,
    /// How many bytes a recording may have.
    pub most_bytes: u64,
}

impl Default for Order {
    fn default() -> Order {
        Order {
            every_ns: NS_PER_S,
            from_ns: 0,
            until_ns: u64::MAX,
            most_bytes: 90_000_000,
        }
    }
}

/// What is entered in a course. The words of each kind are at the functions of `HostCourse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Kind {
    Sent = 1,
    Overloaded,
    Output,
    Set,
    Got,
    Refused,
    Input,
    Started,
    Ended,
    Paused,
    Resumed,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Sent => "sent",
            Kind::Overloaded => "overloaded",
            Kind::Output => "output",
            Kind::Set => "set",
            Kind::Got => "got",
            Kind::Refused => "refused",
            Kind::Input => "input",
            Kind::Started => "started",
            Kind::Ended => "ended",
            Kind::Paused => "paused",
            Kind::Resumed => "resumed",
        }
    }

    /// Whether it came from the host, and not to it.
    fn is_from_host(self) -> bool {
        matches!(
            self,
            Kind::Sent | Kind::Overloaded | Kind::Output | Kind::Set
        )
    }
}

/// A hash after all entries before `until`, and how many these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    until: u64,
    hash: u128,
    count: u64,
}

/// All that went one way at one host. All times are nanoseconds of the lab's clock.
struct Chain {
    hash: u128,
    count: u64,
    /// The end of the interval that the last entry is in.
    until: u64,
    interval: u64,
    marks: Vec<Mark>,
}

impl Chain {
    fn new(interval: u64) -> Chain {
        Chain {
            hash: 0,
            count: 0,
            until: 0,
            interval: interval.max(1),
            marks: Vec::new(),
        }
    }

    fn enter(&mut self, time: u64, kind: Kind, words: &[u64], content: u128) {
        if time >= self.until {
            self.mark();
            self.until = (time / self.interval)
                .saturating_add(1)
                .saturating_mul(self.interval);
        }
        let mut bytes = [0u8; 16 + 8 * (2 + WORDS) + 16];
        bytes[..16].copy_from_slice(&self.hash.to_le_bytes());
        bytes[16..32].copy_from_slice(&content.to_le_bytes());
        let words = [time, kind as u64].into_iter().chain(words.iter().copied());
        let mut end = 32;
        for (word, place) in words.zip(bytes[32..].chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
            end += 8;
        }
        self.hash = xxh3_128(&bytes[..end]);
        self.count += 1;
    }

    /// Keep the hash as it is at the end of the interval that the last entry is in.
    fn mark(&mut self) {
        if self.count == 0 {
            return;
        }
        // After the interval has doubled, two may end together.
        if self
            .marks
            .last()
            .is_some_and(|last| last.until == self.until)
        {
            self.marks.pop();
        }
        self.marks.push(Mark {
            until: self.until,
            hash: self.hash,
            count: self.count,
        });
        while self.marks.len() > MOST_MARKS {
            self.interval = self.interval.saturating_mul(2);
            for mark in &mut self.marks {
                mark.until = mark
                    .until
                    .div_ceil(self.interval)
                    .saturating_mul(self.interval);
            }
            // Of several that end together, the last one is right.
            self.marks.reverse();
            self.marks.dedup_by_key(|mark| mark.until);
            self.marks.reverse();
        }
    }

    fn state(&self) -> ChainState {
        let last = (self.count > 0).then_some(Mark {
            until: self.until,
            hash: self.hash,
            count: self.count,
        });
        ChainState {
            hash: format!("{:032x}", self.hash),
            count: self.count,
            every_ns: self.interval,
            marks: self
                .marks
                .iter()
                .chain(&last)
                .map(|mark| format!("{} {:032x} {}", mark.until, mark.hash, mark.count))
                .collect(),
        }
    }
}

/// A frame, or a piece of text, as a course has it.
pub struct Content {
    pub hash: u128,
    bytes: u64,
    /// What is recorded of it; empty where nothing is recorded.
    head: Vec<u8>,
}

/// What became of a frame that was sent.
pub struct Fate {
    /// When it left its host, by the host's modelled processor.
    pub leaves: u64,
    /// When it arrives, and its duplicate; 0: it does not.
    pub arrives: [u64; 2],
    /// Whether it found the queue full.
    pub dropped: bool,
    /// The wire's random numbers after it: another number if one more was drawn.
    pub drawn: u64,
}

impl Fate {
    /// Of a frame that no wire got.
    pub fn dropped_at(leaves: u64) -> Fate {
        Fate {
            leaves,
            arrives: [0, 0],
            dropped: true,
            drawn: 0,
        }
    }
}

/// A host's part in the course. It is the same one for all kernels of that host.
pub struct HostCourse {
    host: usize,
    to: Chain,
    from: Chain,
    recorder: Option<Rc<RefCell<Recorder>>>,
}

pub type Shared = Rc<RefCell<HostCourse>>;

impl HostCourse {
    /// What the course has of a frame.
    pub fn content(&self, frame: &[u8]) -> Content {
        self.content_with(frame, HEAD)
    }

    fn content_with(&self, bytes: &[u8], head: usize) -> Content {
        let head = match self.recorder {
            Some(_) => bytes[..bytes.len().min(head)].to_vec(),
            None => Vec::new(),
        };
        Content {
            hash: xxh3_128(bytes),
            bytes: bytes.len() as u64,
            head,
        }
    }

    /// The host has sent a frame by a port. Words: port, bytes, when it left, when it arrives (twice), whether the queue was
    /// full, the random numbers.
    pub fn sent(&mut self, time: u64, port: usize, content: &Content, fate: &Fate) {
        let words = [
            port as u64,
            content.bytes,
            fate.leaves,
            fate.arrives[0],
            fate.arrives[1],
            u64::from(fate.dropped),
            fate.drawn,
        ];
        self.enter(time, Kind::Sent, &words, Some(content));
    }

    /// The host has sent a frame that its modelled processor had no time for. Words: port, bytes.
    pub fn overloaded(&mut self, time: u64, port: usize, content: &Content) {
        let words = [port as u64, content.bytes];
        self.enter(time, Kind::Overloaded, &words, Some(content));
    }

    /// The host has put text out on its console. Words: bytes.
    pub fn output(&mut self, time: u64, text: &[u8]) {
        let content = self.content_with(text, HEAD_OF_TEXT);
        self.enter(time, Kind::Output, &[content.bytes], Some(&content));
    }

    /// The wire at a port has other settings from now on. Words: port. The content is the settings, as JSON.
    pub fn set(&mut self, time: u64, port: usize, settings: &[u8]) {
        let content = self.content_with(settings, HEAD_OF_TEXT);
        self.enter(time, Kind::Set, &[port as u64], Some(&content));
    }

    /// A frame has come into the host's buffers. Words: port, bytes, and which frame it is: its sender's number and port, and
    /// its number there. Its content is in its sender's chain.
    pub fn got(&mut self, time: u64, port: usize, bytes: usize, origin: (usize, usize, u64)) {
        self.enter(time, Kind::Got, &from_origin(port, bytes, origin), None);
    }

    /// A frame that came found no room at the host, or its modelled processor no time for it. Words as of `got`.
    pub fn refused(&mut self, time: u64, port: usize, bytes: usize, origin: (usize, usize, u64)) {
        self.enter(time, Kind::Refused, &from_origin(port, bytes, origin), None);
    }

    /// The host's console has got text that clients have sent. Words: bytes.
    pub fn input(&mut self, time: u64, text: &[u8]) {
        let content = self.content_with(text, HEAD_OF_TEXT);
        self.enter(time, Kind::Input, &[content.bytes], Some(&content));
    }

    pub fn started(&mut self, time: u64) {
        self.enter(time, Kind::Started, &[], None);
    }

    pub fn ended(&mut self, time: u64) {
        self.enter(time, Kind::Ended, &[], None);
    }

    pub fn paused(&mut self, time: u64, pauses: bool) {
        let kind = if pauses { Kind::Paused } else { Kind::Resumed };
        self.enter(time, kind, &[], None);
    }

    fn enter(&mut self, time: u64, kind: Kind, words: &[u64], content: Option<&Content>) {
        let chain = if kind.is_from_host() {
            &mut self.from
        } else {
            &mut self.to
        };
        chain.enter(time, kind, words, content.map_or(0, |content| content.hash));
        if let Some(recorder) = &self.recorder {
            recorder
                .borrow_mut()
                .record(time, self.host, kind, words, content);
        }
    }
}

fn from_origin(port: usize, bytes: usize, origin: (usize, usize, u64)) -> [u64; 5] {
    let (host, sender, number) = origin;
    [
        port as u64,
        bytes as u64,
        host as u64,
        sender as u64,
        number,
    ]
}

/// The course of all hosts.
pub struct Course {
    every_ns: u64,
    hosts: Vec<Shared>,
    recorder: Option<Rc<RefCell<Recorder>>>,
}

impl Course {
    /// `file`: where entries are recorded; None: they are not.
    pub fn new(order: &Order, file: Option<File>) -> Course {
        let recorder = file.map(|file| Rc::new(RefCell::new(Recorder::new(order, file))));
        Course {
            every_ns: order.every_ns,
            hosts: Vec::new(),
            recorder,
        }
    }

    /// The part of the host of that number.
    pub fn of(&mut self, host: usize) -> Shared {
        self.has(host + 1);
        self.hosts[host].clone()
    }

    /// There are so many hosts, or more.
    pub fn has(&mut self, count: usize) {
        while self.hosts.len() < count {
            self.hosts.push(Rc::new(RefCell::new(HostCourse {
                host: self.hosts.len(),
                to: Chain::new(self.every_ns),
                from: Chain::new(self.every_ns),
                recorder: self.recorder.clone(),
            })));
        }
    }

    /// Write out what is recorded so far, so that nothing of it is left in this process's memory.
    pub fn write_out(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.borrow_mut().finish();
        }
    }

    /// From now on nothing is recorded.
    pub fn end_recording(&mut self) {
        self.recorder = None;
        for host in &self.hosts {
            host.borrow_mut().recorder = None;
        }
    }

    /// A window begins: nothing is entered any more for what was before it.
    pub fn window_begins(&self, start: u64) {
        if let Some(recorder) = &self.recorder {
            recorder.borrow_mut().whole_before = start;
        }
    }

    /// The course up to `now`. `names` are the hosts' by number. What is recorded has been written when this returns.
    pub fn state(&self, now: u64, names: &[&str]) -> CourseState {
        let hosts: Vec<HostState> = self
            .hosts
            .iter()
            .enumerate()
            .map(|(number, host)| {
                let HostCourse { to, from, .. } = &*host.borrow();
                HostState {
                    name: names.get(number).copied().unwrap_or_default().to_owned(),
                    to: to.state(),
                    from: from.state(),
                }
            })
            .collect();
        let mut all = Vec::new();
        for host in &self.hosts {
            let HostCourse { to, from, .. } = &*host.borrow();
            for chain in [to, from] {
                all.extend_from_slice(&chain.hash.to_le_bytes());
            }
        }
        CourseState {
            now_ns: now,
            fingerprint: format!("{:032x}", xxh3_128(&all)),
            hosts,
            recording: self
                .recorder
                .as_ref()
                .map(|recorder| recorder.borrow_mut().finish()),
        }
    }
}

/// The answer to who asks for the course.
#[derive(Serialize)]
pub struct CourseState {
    pub now_ns: u64,
    /// The hash of all chains as they are, 32 hexadecimal digits.
    pub fingerprint: String,
    /// By number.
    pub hosts: Vec<HostState>,
    /// None: nothing is recorded.
    pub recording: Option<RecordingState>,
}

#[derive(Serialize)]
pub struct HostState {
    pub name: String,
    pub to: ChainState,
    pub from: ChainState,
}

#[derive(Serialize)]
pub struct ChainState {
    /// After the last entry.
    pub hash: String,
    pub count: u64,
    /// How far marks are apart.
    pub every_ns: u64,
    /// For each interval with entries: its end, the hash, and how many entries there were before. The last interval may not be
    /// over.
    pub marks: Vec<String>,
}

#[derive(Serialize)]
pub struct RecordingState {
    /// Before which moment nothing is missing; null: nothing is missing at all.
    pub whole_before_ns: Option<u64>,
    /// Why it ended before its time; null: it did not.
    pub why: Option<String>,
}

/// Writes entries to a file: a line for each, with its time, its host's number, its kind, its words, and where it has content
/// this one's hash and first bytes, in hexadecimal.
struct Recorder {
    file: BufWriter<File>,
    from: u64,
    until: u64,
    left: u64,
    /// The beginning of the window that time is in.
    whole_before: u64,
    /// When it ended before its time, and why.
    ended: Option<(u64, String)>,
    line: String,
}

impl Recorder {
    fn new(order: &Order, file: File) -> Recorder {
        let mut recorder = Recorder {
            file: BufWriter::with_capacity(1 << 18, file),
            from: order.from_ns,
            until: order.until_ns,
            left: order.most_bytes,
            whole_before: 0,
            ended: None,
            line: String::new(),
        };
        let first = format!("{RECORDING} {} {}\n", order.from_ns, order.until_ns);
        recorder.write(&first);
        recorder
    }

    fn record(
        &mut self,
        time: u64,
        host: usize,
        kind: Kind,
        words: &[u64],
        content: Option<&Content>,
    ) {
        if self.ended.is_some() || time < self.from || time >= self.until {
            return;
        }
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        // Writing to a string does not fail.
        let _ = write!(line, "{time} {host} {}", kind.name());
        for word in words {
            let _ = write!(line, " {word}");
        }
        if let Some(Content { hash, head, .. }) = content {
            let _ = write!(line, " {hash:032x} ");
            for byte in head {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                line.push(char::from(DIGITS[usize::from(byte >> 4)]));
                line.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
        line.push('\n');
        self.write(&line);
        self.line = line;
    }

    fn write(&mut self, line: &str) {
        let Some(left) = self.left.checked_sub(line.len() as u64) else {
            let why = "it is as long as a recording may be".into();
            self.ended = Some((self.whole_before, why));
            return;
        };
        self.left = left;
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &io::Error) {
        let why = format!("it could not be written: {error}");
        self.ended.get_or_insert((self.whole_before, why));
    }

    fn finish(&mut self) -> RecordingState {
        if let Err(error) = self.file.flush() {
            self.fail(&error);
        }
        RecordingState {
            whole_before_ns: self.ended.as_ref().map(|(moment, _)| *moment),
            why: self.ended.as_ref().map(|(_, why)| why.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    const MS: u64 = 1_000_000;

    fn course(every_ns: u64) -> Course {
        let order = Order {
            every_ns,
            ..Order::default()
        };
        let mut course = Course::new(&order, None);
        course.has(2);
        course
    }

    fn fingerprint(course: &Course) -> String {
        course.state(0, &["a", "b"]).fingerprint
    }

    const FATE: Fate = Fate {
        leaves: 7,
        arrives: [9, 0],
        dropped: false,
        drawn: 3,
    };

    /// Two hosts act; each of `changes` is another course.
    fn act(course: &mut Course, change: usize) {
        let (one, other) = (course.of(0), course.of(1));
        let frame = if change == 1 { [1u8; 60] } else { [0u8; 60] };
        let content = one.borrow().content(&frame);
        let fate = Fate {
            arrives: [9 + u64::from(change == 2), 0],
            drawn: 3 + u64::from(change == 3),
            leaves: 7 + u64::from(change == 4),
            dropped: change == 5,
        };
        one.borrow_mut().sent(
            7 + u64::from(change == 6),
            usize::from(change == 7),
            &content,
            &fate,
        );
        let number = 1 + u64::from(change == 8);
        if change == 9 {
            other.borrow_mut().refused(9, 0, 60, (0, 0, number));
        } else {
            other.borrow_mut().got(9, 0, 60, (0, 0, number));
        }
        let text: &[u8] = if change == 10 { b"other" } else { b"text" };
        other.borrow_mut().output(9, text);
        if change == 11 {
            one.borrow_mut().paused(9, true);
        }
        if change == 12 {
            one.borrow_mut().paused(9, false);
        }
        let who = if change == 13 { &other } else { &one };
        who.borrow_mut().input(9, b"text");
        if change == 14 {
            one.borrow_mut().set(9, 0, b"{}");
        }
    }

    #[test]
    fn whatever_is_another_is_another_course() {
        let mut seen = Vec::new();
        for change in 0..15 {
            let mut course = course(MS);
            act(&mut course, change);
            let found = fingerprint(&course);
            assert!(!seen.contains(&found), "{change}");
            seen.push(found);
        }
    }

    #[test]
    fn it_does_not_matter_which_host_is_served_first() {
        let both = |order: [usize; 2]| {
            let mut course = course(MS);
            for host in order {
                course.of(host).borrow_mut().output(5, b"text");
            }
            fingerprint(&course)
        };
        assert_eq!(both([0, 1]), both([1, 0]));
    }

    #[test]
    fn the_hash_is_the_same_on_every_machine() {
        let mut course = course(MS);
        act(&mut course, 0);
        assert_eq!(fingerprint(&course), "9dcbd019f419a2bd424772225517e348");
    }

    #[test]
    fn a_mark_is_of_all_that_was_before_its_moment() {
        let mut chain = Chain::new(10);
        let mut expected = Vec::new();
        for time in [3, 9, 10, 35] {
            if time == 10 || time == 35 {
                expected.push(Mark {
                    until: if time == 10 { 10 } else { 20 },
                    hash: chain.hash,
                    count: chain.count,
                });
            }
            chain.enter(time, Kind::Output, &[1], 0);
        }
        assert_eq!(chain.marks, expected);
    }

    #[test]
    fn a_long_course_keeps_few_marks_and_each_is_right() {
        let mut chain = Chain::new(1);
        let mut hashes = Vec::new();
        for time in 0..20_000u64 {
            chain.enter(time, Kind::Output, &[time], 0);
            hashes.push(chain.hash);
        }
        assert!(chain.marks.len() <= MOST_MARKS && chain.marks.len() >= MOST_MARKS / 4);
        assert_eq!(chain.interval, 64);
        let mut last = 0;
        for mark in &chain.marks {
            assert!(mark.until > last && mark.until % chain.interval == 0);
            assert_eq!(mark.hash, hashes[mark.until as usize - 1]);
            assert_eq!(mark.count, mark.until);
            last = mark.until;
        }
        // Each moment up to the last one has its mark.
        assert_eq!(chain.marks.len() as u64, last / chain.interval);
    }

    #[test]
    fn a_lab_that_sleeps_for_years_takes_no_longer_for_it() {
        let mut chain = Chain::new(1);
        for time in [0, u64::MAX / 2, u64::MAX] {
            chain.enter(time, Kind::Output, &[], 0);
        }
        assert_eq!(chain.marks.len(), 2);
    }

    fn recorded(order: Order) -> (String, RecordingState) {
        let path = std::env::temp_dir().join(format!(
            "course-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let options = || {
            File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)
        };
        let (file, mut own) = {
            let file = options().unwrap();
            let own = file.try_clone().unwrap();
            (file, own)
        };
        std::fs::remove_file(&path).unwrap();
        let mut course = Course::new(&order, Some(file));
        course.has(2);
        for second in 0..5 {
            course.window_begins(second * NS_PER_S);
            let host = course.of(1);
            let content = host.borrow().content(&[0xab; 200]);
            host.borrow_mut()
                .sent(second * NS_PER_S + 1, 0, &content, &FATE);
        }
        let state = course.state(0, &[]).recording.unwrap();
        let mut text = String::new();
        own.rewind().unwrap();
        own.read_to_string(&mut text).unwrap();
        (text, state)
    }

    #[test]
    fn what_happens_between_two_moments_is_recorded() {
        let (text, state) = recorded(Order {
            from_ns: NS_PER_S,
            until_ns: 3 * NS_PER_S,
            ..Order::default()
        });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "minigts course 1 1000000000 3000000000");
        assert_eq!(lines.len(), 3);
        let words: Vec<&str> = lines[1].split(' ').collect();
        assert_eq!(
            words[..10],
            [
                "1000000001",
                "1",
                "sent",
                "0",
                "200",
                "7",
                "9",
                "0",
                "0",
                "3"
            ]
        );
        assert_eq!(words[10], format!("{:032x}", xxh3_128(&[0xab; 200])));
        assert_eq!(words[11], "ab".repeat(HEAD));
        assert!(state.why.is_none() && state.whole_before_ns.is_none());
    }

    #[test]
    fn a_recording_is_no_longer_than_it_may_be_and_says_where_it_ends() {
        let most_bytes = 1000;
        let (text, state) = recorded(Order {
            most_bytes,
            ..Order::default()
        });
        assert!(text.len() as u64 <= most_bytes);
        assert_eq!(text.lines().count(), 3);
        assert_eq!(state.whole_before_ns, Some(2 * NS_PER_S));
    }
}
