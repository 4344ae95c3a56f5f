//! What the clock is told: the lab when it begins, kernels as they start, and what clients ask. All of it is JSON. The Python side is
//! tools/minigts/providers/uml/clock_process.py and clock_client.py; the two come from one tree.

use serde::{Deserialize, Serialize};

use crate::course;
use crate::storm;
use crate::wire::{Counts, Settings};

#[derive(Deserialize)]
pub struct Lab {
    /// The time of day at which every lab begins, in nanoseconds since 1970.
    pub epoch_ns: u64,
    /// How many kernels may run at the same time; 0, the default: as many as this machine has processors.
    #[serde(default)]
    pub at_once: usize,
    /// How much of a processor a kernel may use in a turn, in seconds (turn.rs); 60 by default.
    #[serde(default = "longest_turn_s")]
    pub longest_turn_s: u64,
    #[serde(default)]
    pub course: course::Order,
    #[serde(flatten)]
    pub topology: Topology,
}

fn longest_turn_s() -> u64 {
    60
}

#[derive(Deserialize)]
pub struct Topology {
    /// By number. Where no host has a number there is one without a name and ports, which is never started.
    pub hosts: Vec<HostSpec>,
    /// Each link's two ends, as (host, port).
    pub links: Vec<[(usize, usize); 2]>,
    /// What each port sends into, in the order of `hosts` and their ports.
    pub wires: Vec<PortSettings>,
}

#[derive(Deserialize)]
pub struct HostSpec {
    pub name: String,
    /// Each port's MAC address.
    pub ports: Vec<String>,
    /// None: what passes its ports takes the host no time.
    pub processor: Option<Processor>,
    /// Whether its kernel has one card, a trunk, for the ports of all hosts that share it, and none for ports of its own.
    #[serde(default)]
    pub trunk: bool,
    /// None: the host has a kernel of its own.
    #[serde(default)]
    pub within: Option<Within>,
}

/// Where a host is that shares a kernel.
#[derive(Deserialize)]
pub struct Within {
    /// The number of the host whose kernel it is.
    pub kernel: usize,
    /// The tag of each of its ports on that kernel's trunk.
    pub tags: Vec<u16>,
}

/// The time that a modelled processor takes for each frame that passes a port of its host, in nanoseconds.
#[derive(Clone, Deserialize)]
pub struct Processor {
    pub frame_ns: u64,
    pub byte_ns: f64,
}

impl Processor {
    pub fn cost_ns(&self, bytes: usize) -> u64 {
        self.frame_ns + (self.byte_ns * bytes as f64).round() as u64
    }
}

#[derive(Clone, Deserialize, Serialize)]
pub struct PortSettings {
    pub host: usize,
    pub port: usize,
    pub wire: Settings,
}

/// From the supervisor: it starts a host's kernel. With it come the descriptors of the host's calendar, its control line, its
/// console and its ports. A second one, without descriptors, tells the kernel's process.
#[derive(Deserialize)]
pub struct Start {
    pub host: usize,
    /// The supervisor's number of this start, from 1 on; 0 by default.
    #[serde(default)]
    pub start: u64,
    #[serde(default)]
    pub process: Option<i32>,
}

/// From the supervisor of a lab that begins as another one's fork, over the socket that comes with `Fork`. First the number of
/// the messages that follow, with the descriptors of the listening socket for clients and of the log; then one for each host,
/// with those of its control line, its console, its disk, and of the directory that its guest may mount, the first one's and its
/// own.
#[derive(Deserialize)]
pub struct Fork {
    pub hosts: usize,
}

#[derive(Deserialize)]
pub struct ForkedHost {
    pub host: usize,
}

/// To the supervisor: a host is no longer on the clock, since its kernel broke the protocol. The supervisor is to end that
/// kernel.
#[derive(Serialize)]
pub struct Lost<'a> {
    pub host: usize,
    /// The number of the start that the kernel came with.
    pub start: u64,
    pub why: &'a str,
}

/// What a client asks: a line of JSON, whose member `op` is the variant's name in snake case.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    /// Begin a turn, in which this client acts side by side with others. It ends with the connection.
    Turn,
    /// This client's turn rests: time may pass while others act.
    Rest,
    /// This client's turn is busy again: time stands still.
    Resume,
    /// The lab's time, and whether it passes.
    Now,
    /// What each host is doing. This is answered at once, even while hosts have turns.
    Hosts,
    /// Answer when the lab's time is `until_ns`. The turn of that number rests until then; 0: no turn.
    Sleep { until_ns: u64, turn: u64 },
    /// From now on no time passes for that host.
    PauseHost { host: usize },
    /// Time passes again for that host.
    ResumeHost { host: usize },
    /// From now on these are the lab's hosts and links.
    SetTopology(Topology),
    /// The settings and counts of each wire.
    Wires,
    /// The lab's course so far (course.rs).
    Course,
    /// The ports at which there have been storms (storm.rs).
    Storms,
    /// From now on this client gets a line for each frame that a port sends, in front of what it is answered.
    Capture,
    /// The lab becomes two at this moment: all kernels and the clock. A socket comes with the request, whose other end is the
    /// other lab's supervisor. With a seed other than 0 the other lab's kernels draw other random numbers.
    Fork { seed: u64 },
    /// Replace the settings of these wires.
    Set { wires: Vec<PortSettings> },
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum Answer {
    Done {},
    Turn { turn: u64 },
    Now { now_ns: u64, passes: bool },
    Hosts { hosts: Vec<HostState> },
    Wires { wires: Vec<WireState> },
    Course { course: course::CourseState },
    Storms { storms: Vec<storm::StruckPort> },
    Forked(Forked),
    Refused { error: String },
}

/// The lab that a `Fork` has made, and the process of its clock.
#[derive(Serialize)]
pub struct Forked {
    pub now_ns: u64,
    pub clock: i32,
    pub hosts: Vec<ForkedKernel>,
}

/// A kernel of it: its process, the supervisor's number of its start, and the greatest channel that a command has had there.
#[derive(Serialize)]
pub struct ForkedKernel {
    pub host: usize,
    pub process: i32,
    pub start: u64,
    pub last_channel: u32,
}

#[derive(Serialize)]
pub struct WireState {
    #[serde(flatten)]
    pub settings: PortSettings,
    #[serde(flatten)]
    pub counts: Counts,
    /// How many bytes wait now until the rate lets them leave.
    pub queued: u64,
}

/// A frame that a port has sent: when it left its host, in nanoseconds of the lab's clock, and its bytes in hexadecimal.
#[derive(Serialize)]
pub struct Captured {
    pub leaves_ns: u64,
    pub host: usize,
    pub port: usize,
    pub frame: String,
}

impl Captured {
    pub fn new(leaves_ns: u64, (host, port): (usize, usize), frame: &[u8]) -> Captured {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits =
            |byte: &u8| [byte >> 4, byte & 15].map(|half| char::from(DIGITS[usize::from(half)]));
        Captured {
            leaves_ns,
            host,
            port,
            frame: frame.iter().flat_map(digits).collect(),
        }
    }
}

#[derive(Serialize)]
pub struct HostState {
    pub name: String,
    /// "absent", "starting", "waiting", "paused", or "running", which means that it has a turn.
    pub state: &'static str,
    /// How long its turn has lasted, in seconds of this machine's clock; 0 when it has none.
    pub turn_s: u64,
    /// Why the clock has ended its kernel; null if it has not.
    pub lost: Option<String>,
}
