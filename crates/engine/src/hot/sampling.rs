//! Which commands of a thread are sampled, and for how many each stands.
//!
//! A thread takes about as many samples in each tick, but at most one of [`TIMED_COMMANDS`]: a server with little to do
//! knows its hot keys exactly, and a busy one pays next to nothing. The distance to the next sample is random, because
//! clients ask for the same keys in the same order.

use store::{Tick, ticks_between};

use crate::limits::{SAMPLES_PER_TICK, TIMED_COMMANDS};

/// The state of one thread.
#[derive(Debug)]
pub(crate) struct Sampling {
    tick: Tick,
    /// Samples in this tick, and for how many commands they stand.
    taken: u32,
    commands: u64,
    /// For how many commands each sample of this tick stands, unless there are more than in the one before.
    base: u32,
    /// The same of the next sample.
    distance: u32,
    random: fastrand::Rng,
}

impl Sampling {
    /// Begins as a thread that is busy: what it has to do is known after the first tick.
    pub(crate) fn new(now: Tick) -> Self {
        let busy = TIMED_COMMANDS;
        Self { tick: now, taken: 0, commands: 0, base: busy, distance: busy, random: fastrand::Rng::new() }
    }

    /// Commands until the first sample.
    pub(crate) fn first(&mut self) -> u32 {
        self.draw()
    }

    /// The tick that it is in.
    #[inline]
    pub(crate) fn tick(&self) -> Tick {
        self.tick
    }

    /// Another tick begins: chooses a distance by what there was to do. Returns after how many commands the next sample
    /// comes; it was to come after `until`.
    pub(crate) fn turn(&mut self, now: Tick, until: u32) -> u32 {
        let in_a_tick = self.commands / ticks_between(self.tick, now).max(1);
        let wanted = u32::try_from(in_a_tick / u64::from(SAMPLES_PER_TICK)).unwrap_or(u32::MAX);
        self.base = wanted.clamp(1, TIMED_COMMANDS);
        (self.tick, self.taken, self.commands) = (now, 0, 0);
        if self.base < self.distance {
            self.distance = self.base;
            return self.draw();
        }
        until
    }

    /// Takes a sample: for how many commands it stands, and after how many the next one comes.
    pub(crate) fn next(&mut self) -> (u32, u32) {
        let stands_for = self.distance;
        self.taken += 1;
        self.commands += u64::from(stands_for);
        // Twice as many as expected are a burst: the distance doubles with each further step.
        let steps = (self.taken / SAMPLES_PER_TICK).saturating_sub(1).min(TIMED_COMMANDS.ilog2());
        self.distance = (self.base << steps).min(TIMED_COMMANDS);
        (stands_for, self.draw())
    }

    /// From 1 to nearly twice the distance, which is the mean.
    fn draw(&mut self) -> u32 {
        self.random.u32(1..2 * self.distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the samples of so many commands in a tick, and for how many they stand.
    fn run(sampling: &mut Sampling, until: &mut u32, tick: Tick, commands: u32) -> (u32, u32) {
        let (mut samples, mut sum) = (0, 0);
        *until = sampling.turn(tick, *until);
        for _ in 0..commands {
            *until -= 1;
            if *until == 0 {
                let (stands_for, next) = sampling.next();
                (samples, sum, *until) = (samples + 1, sum + stands_for, next);
            }
        }
        (samples, sum)
    }

    /// Samples together stand for as many commands as there were, within what chance does; and they are few, also in a
    /// burst.
    #[test]
    fn samples_stand_for_all_commands() {
        let mut sampling = Sampling::new(0);
        let mut until = sampling.first();
        for (tick, commands) in [20, 20, 100_000, 100_000, 3_000, 3_000, 40, 40].into_iter().enumerate() {
            let (samples, sum) = run(&mut sampling, &mut until, u32::try_from(tick).unwrap(), commands);
            let far = sum.abs_diff(commands);
            assert!(far <= commands / 5 + 2 * TIMED_COMMANDS, "{sum} for {commands} in {samples} samples");
            let most = 8 * SAMPLES_PER_TICK + commands / 50;
            assert!(samples <= most, "{samples} samples of {commands}");
        }
    }

    #[test]
    fn few_commands_are_all_sampled() {
        let mut sampling = Sampling::new(0);
        let mut until = sampling.first();
        for tick in 1..10 {
            assert_eq!(run(&mut sampling, &mut until, tick, 200), (200, 200));
        }
    }
}
