//! Two tenants that use the same keys, accounts, unique values and actors: what one of them is
//! answered, and what it sees, is what it would be if the other one did not exist.
//!
//! Each tenant's steps are taken in a store that both share, and once more in a store of its own;
//! after each step the two agree, apart from ids of commands and positions. The second tenant's
//! texts and amounts are marked. A failing history prints the command that replays it:
//! `SEQUOR_SEED` runs one seed, `SEQUOR_SLOW=1` many more than by default.

mod mix;
mod sight;
mod steps;

use sequor::TenantId;
use sequor::ports::Store;
use sequor_testkit::ManualClock;

use crate::bank::{Bank, bank, tenant};
use crate::doing::{Handling, doing};
use crate::watched::Watched;
use mix::{Mix, Rows, mix};
use sight::Sight;
use steps::{ACCOUNTS, Chance, Mark, Step, take};

on_every_store!(a_tenant_is_answered_as_if_it_were_alone);

/// Steps of one history.
const STEPS: u64 = 150;

/// What must come up, or nothing was tried.
const ANSWERS: [&str; 9] = [
    "Executed",
    "Replayed",
    "Replay(",
    "KeyReused",
    "Conflict",
    "UniqueTaken",
    "Rejected",
    "Issued",
    "Invalid",
];

const PLAIN: Mark = Mark { text: "plain", unit: 1 };
const MARKED: Mark = Mark { text: "zebra", unit: 1_000_003 };

/// Says how to replay a history, if it fails.
struct Replay(u64);

impl Drop for Replay {
    #[expect(clippy::print_stderr, reason = "whoever sees the failure needs the seed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with: SEQUOR_SEED={} cargo test -p sequor two_tenants", self.0);
        }
    }
}

fn seeds() -> Vec<u64> {
    if let Ok(seed) = std::env::var("SEQUOR_SEED") {
        return vec![seed.parse().unwrap()];
    }
    let is_slow = std::env::var("SEQUOR_SLOW").is_ok_and(|slow| slow == "1");
    (1..=if is_slow { 40 } else { 2 }).collect()
}

async fn a_tenant_is_answered_as_if_it_were_alone<H: Rows>(store: Watched<H>) {
    let (seeds, mut answers) = (seeds(), String::new());
    for seed in seeds.iter().copied() {
        let _replay = Replay(seed);
        // By turns they share a partition of the log.
        let other = neighbour(&store, seed.is_multiple_of(2));
        answers += &play(seed, [tenant(1), other], H::fresh().await).await;
    }
    let missing = ANSWERS.iter().find(|word| !answers.contains(**word));
    assert!(seeds.len() == 1 || missing.is_none(), "never answered: {missing:?}");
}

/// Another tenant, of the first one's partition or of another; a store with one partition has the
/// first kind only.
fn neighbour<H: Rows>(store: &Watched<H>, same: bool) -> TenantId {
    let partition = store.partition(tenant(1));
    let mut others = (2..=200).map(tenant);
    let found = others.find(|other| (store.partition(*other) == partition) == same);
    found.unwrap_or(tenant(2))
}

/// A tenant's view of a store.
struct Side<H: Rows> {
    bank: Bank<H>,
    sight: Sight<H>,
}

impl<H: Rows> Side<H> {
    fn new(store: &Watched<H>, bank: &Bank<H>, tenant: TenantId) -> Self {
        Self { bank: bank.clone(), sight: Sight::new(store, tenant) }
    }

    async fn take(&self, step: Option<&Step>) -> String {
        match step {
            Some(step) => take(&self.bank, self.sight.tenant, step).await,
            None => String::new(),
        }
    }
}

fn service<H: Rows>(store: &Watched<H>) -> Bank<H> {
    let handler = doing(|asked: &Mix, repo| -> Handling<'_, Mix> { Box::pin(mix(asked, repo)) });
    bank(store).handler(handler).clock(ManualClock::default()).build().unwrap()
}

/// Plays a history, and tells all answers.
async fn play<H: Rows>(seed: u64, tenants: [TenantId; 2], store: Watched<H>) -> String {
    let mut answers = String::new();
    let bank = service(&store);
    let mut together = tenants.map(|tenant| Side::new(&store, &bank, tenant));
    let mut alone = Vec::new();
    for tenant in tenants {
        let own = H::fresh().await;
        alone.push(Side::new(&own, &service(&own), tenant));
    }
    let mut chance = Chance::new(seed);
    let mut past = [Vec::new(), Vec::new()];
    for number in 0..STEPS {
        let steps = match usize::try_from(number).ok().and_then(|first| ACCOUNTS.get(first)) {
            Some(account) => [Some(Step::open(account)), Some(Step::open(account))],
            None => steps_of_both(&mut chance, &mut past),
        };
        let [one, other] = &together;
        let (one, other) = tokio::join!(one.take(steps[0].as_ref()), other.take(steps[1].as_ref()));
        for (place, answer) in [one, other].into_iter().enumerate() {
            let (step, alone) = (steps[place].as_ref(), &mut alone[place]);
            let context = format!("seed {seed}, step {number}, tenant {place}: {step:?}");
            let expected = alone.take(step).await;
            answers += &answer;
            let (together, mark) = (&mut together[place], [PLAIN, MARKED][place]);
            let answer = answer + &together.sight.look(&together.bank).await;
            let expected = expected + &alone.sight.look(&alone.bank).await;
            assert_holds_nothing_of(tenants[1 - place], mark, &answer, &context);
            let (answer, expected) =
                (together.sight.names.plain(&answer), alone.sight.names.plain(&expected));
            assert_eq!(answer, expected, "{context}");
        }
        let [one, other] = &together;
        let shared = one.sight.names.shared_with(&other.sight.names, store.epoch());
        assert!(shared.is_empty(), "seed {seed}, step {number}: both saw {shared:?}");
    }
    answers
}

/// What each of the two does next: one of them something, or both the same at the same time.
fn steps_of_both(chance: &mut Chance, past: &mut [Vec<Step>; 2]) -> [Option<Step>; 2] {
    let turn = chance.below(4);
    let twin = chance.clone();
    let [plain, marked] = past;
    let one = (turn != 1).then(|| Step::next(chance, PLAIN, plain));
    let other = (turn != 0).then(|| match turn {
        1 => Step::next(chance, MARKED, marked),
        _ => Step::next(&mut twin.clone(), MARKED, marked),
    });
    [one, other]
}

/// Neither the other tenant itself nor what it is recognised by.
fn assert_holds_nothing_of(other: TenantId, own: Mark, text: &str, context: &str) {
    let is_plain = own.unit == PLAIN.unit;
    let foreign = if is_plain { MARKED.text } else { PLAIN.text };
    assert!(!text.contains(foreign), "{context}: a text of the other tenant in {text}");
    assert!(!text.contains(&other.to_string()), "{context}: the other tenant in {text}");
    for cents in amounts(text) {
        let is_own = if is_plain { cents.abs() < MARKED.unit } else { cents % MARKED.unit == 0 };
        assert!(is_own, "{context}: {cents} cents of the other tenant in {text}");
    }
}

/// The numbers that stand behind the word `cents`.
fn amounts(text: &str) -> impl Iterator<Item = i64> {
    text.split("cents").skip(1).filter_map(|behind| {
        let number = behind.trim_start_matches(['"', '\\', ':', ' ', '=']);
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(number.len());
        number[..end].parse().ok()
    })
}
