//! Inputs that chance changes, of which those are kept that reach code that none before has reached.
//!
//! What has been reached is told by the counters of `-C instrument-coverage`, which the compiler puts into a section of the
//! program. Without that flag there are none, and the inputs that begin it are changed at random.

use crate::script::Chance;

/// No input is longer, in bytes.
const LONGEST: usize = 4096;

#[cfg(coverage)]
extern "C" {
    // The bounds of the section, which the linker names.
    #[link_name = "__start___llvm_prf_cnts"]
    static mut COUNTERS: u64;
    #[link_name = "__stop___llvm_prf_cnts"]
    static mut COUNTERS_END: u64;
}

/// How often each piece of code has run since this was last called.
#[cfg(coverage)]
fn take_counts() -> Vec<u64> {
    // SAFETY: the linker's bounds of an array of numbers. One thread runs what counts there.
    unsafe {
        let first = &raw mut COUNTERS;
        let count = (&raw const COUNTERS_END).offset_from(first) as usize;
        let counters = std::slice::from_raw_parts_mut(first, count);
        let counts = counters.to_vec();
        counters.fill(0);
        counts
    }
}

#[cfg(not(coverage))]
fn take_counts() -> Vec<u64> {
    Vec::new()
}

/// How far a search has come.
pub struct Found {
    pub inputs: usize,
    /// Of those, how many have reached something new.
    pub kept: usize,
    /// How many pieces of code have been reached.
    pub reached: usize,
}

/// Try `count` inputs that come of these. `act` has to panic for what is wrong; the input is shown then.
pub fn search(seeds: &[Vec<u8>], count: u64, seed: u64, act: impl Fn(&[u8])) -> Found {
    let mut chance = Chance(seed);
    let mut kept: Vec<Vec<u8>> = seeds.to_vec();
    let mut reached: Vec<u64> = Vec::new();
    let mut found = Found {
        inputs: 0,
        kept: 0,
        reached: 0,
    };
    for number in 0..count {
        let input = match kept.get(number as usize) {
            Some(input) if found.inputs < seeds.len() => input.clone(),
            _ => changed(&mut chance, &kept),
        };
        take_counts();
        let shown = Shown(&input);
        act(&input);
        std::mem::forget(shown);
        found.inputs += 1;
        let counts = take_counts();
        reached.resize(counts.len(), 0);
        let mut is_new = false;
        for (reached, count) in reached.iter_mut().zip(counts) {
            // Once, twice, four times and so on are each something else.
            let bit = 1u64.checked_shl(64 - count.leading_zeros()).unwrap_or(0);
            let bit = if count == 0 { 0 } else { bit };
            is_new |= bit & !*reached != 0;
            *reached |= bit;
        }
        if is_new && found.inputs > seeds.len() {
            found.kept += 1;
            kept.push(input);
        }
    }
    found.reached = reached.iter().filter(|each| **each != 0).count();
    found
}

/// Says which input it was, if that has not ended well.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        eprintln!("the input was {:?}", self.0);
    }
}

/// One of the inputs with up to four changes.
fn changed(chance: &mut Chance, inputs: &[Vec<u8>]) -> Vec<u8> {
    // Those that came last have reached most.
    let at = chance
        .below(inputs.len() as u64)
        .max(chance.below(inputs.len() as u64));
    let mut input = inputs[at as usize].clone();
    for _ in 0..1 + chance.below(4) {
        change(chance, &mut input, inputs);
    }
    input.truncate(LONGEST);
    input
}

fn change(chance: &mut Chance, input: &mut Vec<u8>, inputs: &[Vec<u8>]) {
    let place = |chance: &mut Chance, input: &[u8]| chance.below(input.len() as u64 + 1) as usize;
    let (one, other) = (place(chance, input), place(chance, input));
    let (from, to) = (one.min(other), one.max(other));
    match chance.below(10) {
        0 if chance.one_in(3) => input.truncate(from),
        0 => {
            input.drain(from..to.min(from + 16));
        }
        1 => {
            let again = input[from..to.min(from + 64)].to_vec();
            input.splice(from..from, again);
        }
        2 => {
            let of = &inputs[chance.below(inputs.len() as u64) as usize];
            let start = place(chance, of);
            let piece = of[start..of.len().min(start + 64)].to_vec();
            input.splice(from..from, piece);
        }
        3 => input.insert(from, chance.next() as u8),
        4 | 5 if input.get(from).is_some_and(u8::is_ascii_digit) => {
            input[from] = b'0' + chance.below(10) as u8;
        }
        4 | 5 if from < input.len() => input[from] ^= 1 << chance.below(8),
        6 if from < input.len() => {
            input[from] = chance.pick(&[0, 1, 2, 8, 16, 0x7f, 0x80, 0xff]);
        }
        7 | 8 => change_number(chance, input),
        _ if input.len() >= 8 => {
            let at = chance.below(input.len() as u64 - 7) as usize;
            let near: u64 = chance.pick(&[
                0,
                1,
                12,
                256,
                4096,
                65_535,
                1 << 20,
                1 << 31,
                1 << 32,
                1 << 63,
            ]);
            let number: u64 = near.wrapping_sub(chance.below(3));
            let size = chance.pick(&[2, 4, 8]);
            input[at..at + size].copy_from_slice(&number.to_ne_bytes()[..size]);
        }
        _ => {}
    }
}

/// Replace one of the numbers that are written in digits by another one.
fn change_number(chance: &mut Chance, input: &mut Vec<u8>) {
    let is_digit = |at: usize| input.get(at).is_some_and(u8::is_ascii_digit);
    let begins = |at: &usize| is_digit(*at) && (*at == 0 || !is_digit(*at - 1));
    let begins: Vec<usize> = (0..input.len()).filter(begins).collect();
    if begins.is_empty() {
        return;
    }
    let from = begins[chance.below(begins.len() as u64) as usize];
    let length = (from..).take_while(|at| is_digit(*at)).count();
    let number = chance.pick(&[0, 1, 2, 1 << 32, i64::MAX as u64, u64::MAX]);
    input.splice(from..from + length, number.to_string().into_bytes());
}
