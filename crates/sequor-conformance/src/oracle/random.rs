//! Chance that can be had again: one seed, one history.

use sequor_core::{Commit, StreamId, TenantId};

use crate::sample::{EMAIL, NUMBER, Sample, account, command, json, tenant};

/// SplitMix64.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0, below `bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Whether something happens that does so `percent` times in a hundred.
    pub(super) fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// An index below `count`.
    fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap()
    }

    fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    pub(super) fn tenant(&mut self) -> TenantId {
        tenant(1 + u8::from(self.happens(40)))
    }
}

/// How many aggregates a tenant has; few, so that commands meet.
const ACCOUNTS: u64 = 5;
/// How many keys a tenant has; most are used again.
const KEYS: u64 = 40;

/// Every account of both tenants.
pub(super) fn accounts() -> Vec<StreamId> {
    let of = |number| (0..ACCOUNTS).map(move |n| account(tenant(number), &format!("a{n}")));
    of(1).chain(of(2)).collect()
}

/// Every key.
pub(super) fn keys() -> impl Iterator<Item = String> {
    (0..KEYS).map(|n| format!("k{n}"))
}

/// Every value of each scope.
pub(super) fn values() -> impl Iterator<Item = (&'static str, &'static str)> {
    let in_scope = |scope| ["u", "v", "w", "x"].into_iter().map(move |value| (scope, value));
    in_scope(EMAIL).chain(in_scope(NUMBER))
}

/// A command of a tenant, most often decided on the versions that there are.
pub(super) async fn commit<F: Future<Output = u64>>(
    random: &mut Random,
    tenant: TenantId,
    version_of: impl Fn(StreamId) -> F,
) -> Commit {
    let mut sample = command(tenant).giving(&json(&random.below(1_000).to_string()));
    if random.happens(60) {
        sample = sample.key(&format!("k{}", random.below(KEYS)));
    }
    if random.happens(50) {
        sample = sample.actor(random.one_of::<&str>(&["ada", "bob"]));
    }
    let first = random.below(ACCOUNTS);
    let count = *random.one_of(&[1, 1, 1, 2, 3]);
    for n in 0..count as u64 {
        let id = format!("a{}", (first + n * 2) % ACCOUNTS);
        let version = version_of(account(tenant, &id)).await;
        sample = sample.on(&id, decided_on(random, version));
        sample = unique(random, sample);
    }
    for _ in 0..random.below(4) {
        sample = sample
            .back_to(random.index(count))
            .event_with(crate::sample::DEPOSITED, &json(&random.next().to_string()));
    }
    sample.build()
}

fn decided_on(random: &mut Random, version: u64) -> u64 {
    match random.below(20) {
        0 => version + 1,
        1 => version.saturating_sub(1),
        _ => version,
    }
}

fn unique(random: &mut Random, sample: Sample) -> Sample {
    let values: Vec<_> = values().collect();
    let (scope, value) = *random.one_of(&values);
    match random.below(10) {
        0..3 => sample.hold(scope, value),
        3 => sample.release(scope),
        4 => sample.release_all(),
        _ => sample,
    }
}
