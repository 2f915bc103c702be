//! Bounds of what one command may write.

/// Bounds of what one command may write, checked before anything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest JSON of a command, an event or an output, in bytes. Default 1 MiB, 1 KiB to
    /// 64 MiB; larger values cost memory in every batch and replay.
    pub payload_bytes_max: usize,
    /// All JSON of one command together, in bytes. Default 16 MiB, 1 KiB to 256 MiB;
    /// a large command holds up those that share its flush.
    pub commit_bytes_max: usize,
    /// Events of one command. Default 10,000, 1 to 100,000; a long command delays its neighbours.
    pub events_max: usize,
    /// Aggregates that one command reads or writes. Default 1,000, 1 to 10,000; each one is a
    /// version to compare.
    pub streams_max: usize,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        payload_bytes_max: 1 << 20,
        commit_bytes_max: 16 << 20,
        events_max: 10_000,
        streams_max: 1_000,
    };

    /// Whether every bound is in its documented range.
    #[must_use]
    pub fn are_in_range(&self) -> bool {
        (1 << 10..=64 << 20).contains(&self.payload_bytes_max)
            && (1 << 10..=256 << 20).contains(&self.commit_bytes_max)
            && (1..=100_000).contains(&self.events_max)
            && (1..=10_000).contains(&self.streams_max)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
