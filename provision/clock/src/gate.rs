//! Time passes only while somebody waits for a host, and nobody who is about to ask something is still busy.

use std::collections::{HashMap, HashSet};

/// Who waits for what, and who is busy.
///
/// A *wait* is for what a host says on one of its channels; it ends in the moment of the clock in which the host says
/// it. A *turn* is a client's that acts side by side with others: as long as any of them is busy, time stands still.
#[derive(Default)]
pub struct Gate {
    /// What hosts can still say something on: commands that were begun and have not ended.
    channels: HashSet<(usize, u32)>,
    waits: HashMap<(usize, u32), Wait>,
    turns: HashMap<u64, bool>,
    paced: HashSet<(usize, u32)>,
}

struct Wait {
    turn: u64,
    for_end: bool,
}

impl Gate {
    /// Whether time may pass for a client's sake.
    pub fn is_open(&self) -> bool {
        (!self.waits.is_empty() || !self.paced.is_empty()) && !self.somebody_is_busy()
    }

    pub fn somebody_is_busy(&self) -> bool {
        self.turns.values().any(|busy| *busy)
    }

    /// Whether a second of the clock is to take a second: somebody sits at a terminal, and nobody else waits.
    pub fn is_paced(&self) -> bool {
        self.waits.is_empty() && !self.paced.is_empty()
    }

    /// A client has a host begin a command.
    pub fn begin(&mut self, host: usize, channel: u32) {
        self.channels.insert((host, channel));
    }

    /// A client waits for the channel: for its end, or for anything that comes on it. `turn` is 0 for one that acts
    /// alone. What it waits for may have come while it asked; then it is busy, for it has yet to read that.
    pub fn wait(&mut self, host: usize, channel: u32, turn: u64, for_end: bool) {
        if !self.channels.contains(&(host, channel)) {
            return;
        }
        self.waits.insert((host, channel), Wait { turn, for_end });
        self.rest(turn);
    }

    /// A host has said something on a channel; who waited for it is busy again.
    pub fn heard(&mut self, host: usize, channel: u32, ends: bool) {
        if ends {
            self.channels.remove(&(host, channel));
            self.paced.remove(&(host, channel));
        }
        if self
            .waits
            .get(&(host, channel))
            .is_some_and(|wait| ends || !wait.for_end)
        {
            self.end_wait(host, channel);
        }
    }

    pub fn pace(&mut self, host: usize, channel: u32) {
        if self.channels.contains(&(host, channel)) {
            self.paced.insert((host, channel));
        }
    }

    /// Nobody listens to a channel any more.
    pub fn forget(&mut self, host: usize, channel: u32) {
        self.paced.remove(&(host, channel));
        self.end_wait(host, channel);
    }

    /// A host has ended, and what was waited for on it will not come.
    pub fn forget_host(&mut self, host: usize) {
        let channels: Vec<u32> = self
            .waits
            .keys()
            .filter(|key| key.0 == host)
            .map(|key| key.1)
            .collect();
        for channel in channels {
            self.end_wait(host, channel);
        }
        self.paced.retain(|key| key.0 != host);
        self.channels.retain(|key| key.0 != host);
    }

    pub fn begin_turn(&mut self, turn: u64) {
        self.turns.insert(turn, true);
    }

    pub fn set_busy(&mut self, turn: u64, busy: bool) {
        self.turns.insert(turn, busy);
    }

    /// The turn waits for the clock itself; 0 is nobody's.
    pub fn rest(&mut self, turn: u64) {
        if let Some(busy) = self.turns.get_mut(&turn) {
            *busy = false;
        }
    }

    pub fn resume(&mut self, turn: u64) {
        if let Some(busy) = self.turns.get_mut(&turn) {
            *busy = true;
        }
    }

    pub fn end_turn(&mut self, turn: u64) {
        self.turns.remove(&turn);
    }

    fn end_wait(&mut self, host: usize, channel: u32) {
        if let Some(wait) = self.waits.remove(&(host, channel)) {
            self.resume(wait.turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate_with(channels: &[(usize, u32)]) -> Gate {
        let mut gate = Gate::default();
        channels
            .iter()
            .for_each(|(host, channel)| gate.begin(*host, *channel));
        gate
    }

    #[test]
    fn time_passes_while_somebody_waits() {
        let mut gate = gate_with(&[(0, 1)]);
        assert!(!gate.is_open());
        gate.wait(0, 1, 0, true);
        assert!(gate.is_open());
        gate.heard(0, 1, false);
        assert!(gate.is_open());
        gate.heard(0, 1, true);
        assert!(!gate.is_open());
    }

    #[test]
    fn who_waits_for_anything_hears_all() {
        let mut gate = gate_with(&[(0, 1)]);
        gate.wait(0, 1, 0, false);
        gate.heard(0, 1, false);
        assert!(!gate.is_open());
    }

    #[test]
    fn time_stands_until_every_turn_waits() {
        let mut gate = gate_with(&[(0, 1), (1, 1)]);
        gate.begin_turn(7);
        gate.begin_turn(8);
        gate.wait(0, 1, 7, true);
        assert!(!gate.is_open());
        gate.wait(1, 1, 8, true);
        assert!(gate.is_open());
        gate.heard(1, 1, true);
        assert!(!gate.is_open());
        gate.end_turn(8);
        assert!(gate.is_open());
    }

    #[test]
    fn nothing_is_awaited_of_a_host_that_has_ended() {
        let mut gate = gate_with(&[(0, 1), (0, 2)]);
        gate.wait(0, 1, 0, true);
        gate.pace(0, 2);
        gate.forget_host(0);
        assert!(!gate.is_open());
    }

    #[test]
    fn nobody_waits_for_what_has_been_said_already() {
        let mut gate = gate_with(&[(0, 1), (0, 2)]);
        gate.begin_turn(7);
        gate.wait(0, 1, 7, false);
        gate.heard(0, 1, false);
        gate.heard(0, 1, true);
        gate.wait(0, 1, 7, false);
        assert!(gate.somebody_is_busy());
        gate.end_turn(7);
        gate.heard(0, 2, true);
        gate.pace(0, 2);
        assert!(!gate.is_open());
    }
}
