//! Reproducible chance (xorshift).

pub(crate) struct Chance(u64);

impl Chance {
    /// From `SEQUOR_SEED`, or new each time; printed, so that it can be had again.
    pub(crate) fn from_environment() -> Self {
        let given = std::env::var("SEQUOR_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| u64::from(std::process::id()) | 1);
        println!("SEQUOR_SEED={seed} cargo test -p sequor --all-features --test crash");
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
