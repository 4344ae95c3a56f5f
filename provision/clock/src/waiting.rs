//! What a wire remembers of the frames that have not left it yet, so that a change of its settings reaches them.
//!
//! Here is what is remembered, and how much. What a change does with it is in wire.rs.

use std::collections::VecDeque;

use crate::wire::Leaving;

/// How many bytes of frames that do not arrive a wire keeps, since another setting may let them: as many as may be under way
/// on any port. What is lost beyond that stays lost.
const MOST_KEPT: u64 = 16 << 20;

/// How one copy of a frame goes on once it has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Its number among the copies of this wire that arrive.
    pub number: u64,
    /// How long it is under way, slots and the order of frames aside; None: no time, and it overtakes others.
    pub delay_ns: Option<u64>,
    /// Which of its bits is turned over.
    pub flipped: Option<usize>,
}

/// A frame that a wire has taken and that has not left it yet.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// When it came.
    pub came: u64,
    pub bytes: u64,
    /// The wire once it has left.
    pub leaving: Leaving,
    /// `Wire::arrived_at` without it.
    pub arrived_before: u64,
    /// How many bytes the wire had taken with it, since it began.
    pub taken: u64,
    /// How many frames it stands for, and how many the wire had taken with them.
    pub frames: u64,
    pub nth: u64,
    pub copies: [Option<Copy>; 2],
    /// How many of its copies are lost.
    pub lost: u64,
    /// The frame as it came, where all of its copies are lost.
    pub kept: Option<Vec<u8>>,
}

/// A frame that a modelled processor hands over in a later moment, for which there will be no room then.
#[derive(Clone, Debug)]
pub struct Refused {
    pub came: u64,
    pub frame: Vec<u8>,
}

impl Waiting {
    /// When its last bit leaves.
    pub fn left(&self) -> u64 {
        self.leaving.free_at
    }
}

#[derive(Debug, Default)]
pub struct Ledger {
    /// In the order in which they leave.
    pub waiting: VecDeque<Waiting>,
    /// In the order in which they come.
    pub refused: VecDeque<Refused>,
    /// How many bytes are in frames that do not arrive.
    kept_bytes: u64,
    /// The bytes and the number of all frames that were entered.
    taken: u64,
    nth: u64,
}

impl Ledger {
    /// Forget what has left before `settled`, or has been refused before it.
    pub fn settle(&mut self, settled: u64) {
        while self.waiting.front().is_some_and(|one| one.left() < settled) {
            self.pop_front();
        }
        while self.refused.front().is_some_and(|one| one.came < settled) {
            let one = self.refused.pop_front().expect("it was there");
            self.kept_bytes -= one.frame.len() as u64;
        }
    }

    fn pop_front(&mut self) {
        let kept = self.waiting.pop_front().and_then(|one| one.kept);
        self.kept_bytes -= kept.map_or(0, |frame| frame.len() as u64);
    }

    /// Enter a frame that leaves last. One of which nothing can arrive any more, as there is no room to keep it, becomes a part
    /// of the one before it: so a wire on which nothing arrives remembers no more than one of them.
    pub fn enter(&mut self, mut one: Waiting) {
        self.taken += one.bytes;
        one.taken = self.taken;
        self.nth += one.frames;
        one.nth = self.nth;
        if one.kept.is_some() && !self.has_room(one.bytes) {
            one.kept = None;
        }
        self.kept_bytes += one.kept.as_ref().map_or(0, |frame| frame.len() as u64);
        self.waiting.push_back(one);
        self.join_last();
    }

    /// The copy of the last frame with that number found no room on its way.
    pub fn forget(&mut self, number: u64) {
        if let Some(last) = self.waiting.back_mut() {
            for copy in &mut last.copies {
                if copy.is_some_and(|copy| copy.number == number) {
                    *copy = None;
                }
            }
        }
        self.join_last();
    }

    fn join_last(&mut self) {
        let nothing_arrives = |one: &Waiting| one.kept.is_none() && one.copies == [None, None];
        let count = self.waiting.len();
        if count < 2
            || !nothing_arrives(&self.waiting[count - 1])
            || !nothing_arrives(&self.waiting[count - 2])
        {
            return;
        }
        let last = self.waiting.pop_back().expect("there are two");
        let before = &mut self.waiting[count - 2];
        before.leaving = last.leaving;
        before.taken = last.taken;
        before.nth = last.nth;
        before.bytes += last.bytes;
        before.frames += last.frames;
        before.lost += last.lost;
    }

    /// Remember a frame for which there will be no room at `came`.
    pub fn refuse(&mut self, came: u64, frame: Vec<u8>) {
        if self.has_room(frame.len() as u64) {
            self.kept_bytes += frame.len() as u64;
            self.refused.push_back(Refused { came, frame });
        }
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.kept_bytes + bytes <= MOST_KEPT
    }

    /// How many bytes have the frames that leave after `now`.
    pub fn bytes_after(&self, now: u64) -> u64 {
        match self.gone_by(now).checked_sub(1) {
            Some(last) => self.taken - self.waiting[last].taken,
            None => match self.waiting.front() {
                Some(first) => self.taken - (first.taken - first.bytes),
                None => 0,
            },
        }
    }

    /// How many frames leave after `now`.
    pub fn frames_after(&self, now: u64) -> u64 {
        match self.gone_by(now).checked_sub(1) {
            Some(last) => self.nth - self.waiting[last].nth,
            None => match self.waiting.front() {
                Some(first) => self.nth - (first.nth - first.frames),
                None => 0,
            },
        }
    }

    /// How many of the frames here have left by `now`.
    fn gone_by(&self, now: u64) -> usize {
        self.waiting.partition_point(|one| one.left() <= now)
    }

    /// Take out all frames that leave after `now`, and those that are to be refused after it; nothing is left here.
    pub fn take_after(&mut self, now: u64) -> (VecDeque<Waiting>, VecDeque<Refused>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.drain(..waiting.partition_point(|one| one.left() <= now));
        let mut refused = std::mem::take(&mut self.refused);
        refused.retain(|one| one.came > now);
        self.kept_bytes = 0;
        (waiting, refused)
    }
}
