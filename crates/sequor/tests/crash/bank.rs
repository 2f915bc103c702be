//! The service, and the commands that it is asked for: number by number always the same.

use std::convert::Infallible;
use std::marker::PhantomData;

use sequor::{CommandService, Error, Invalid, Meta, Mode, Options, Receipt, TenantId, uuid::Uuid};

use crate::domain::{Account, Deposit, Home, Rename, Sums, Transfer, Transfers};

/// Accounts that every round writes; all others are a round's own.
const HOT: u64 = 4;

/// Two tenants on one store: what the one does is projected, and so travels in transactions of
/// several statements; what the other does may travel in one.
#[derive(Clone)]
pub(crate) struct Bank<H: Home> {
    projected: CommandService<H>,
    bare: CommandService<H>,
}

/// A command of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ask {
    pub(crate) round: u64,
    pub(crate) number: u64,
}

impl<H: Home> Bank<H> {
    pub(crate) fn new(store: H) -> Self {
        let builder = |store: H| {
            CommandService::builder(store)
                .decider::<Account, Deposit>()
                .decider::<Account, Rename>()
                .handler::<Transfer>(Transfers)
        };
        let projected = builder(store.clone()).projection(Sums::<H>(PhantomData)).build();
        let bare = builder(store).build().expect("the service is sound");
        Self { projected: projected.expect("the service is sound"), bare }
    }

    pub(crate) fn store(&self) -> &H {
        self.bare.store()
    }

    /// Of eight commands in a row two are transfers and one is a rename; the next eight are the
    /// other tenant's. Both tenants use the same keys.
    pub(crate) async fn execute(&self, ask: Ask) -> Result<Receipt<i64>, Error<Infallible>> {
        let Ask { round, number } = ask;
        let (block, place) = (number / 8, number % 8);
        let (service, tenant) = match block % 2 {
            0 => (&self.projected, tenant(7)?),
            _ => (&self.bare, tenant(8)?),
        };
        let key = format!("{round}-{}", block / 2 * 8 + place);
        let meta = Meta::new(tenant).key(key.parse()?);
        let options = Options::default().mode(Mode::Output);
        let (account, cents) = (account(ask), 1 + i64::try_from(number % 9).unwrap_or(0));
        match place {
            // Both ways, and both ends may be hot.
            3 | 7 => {
                let (from, to) = (account, (number / 3 + account + 1) % HOT);
                let (from, to) = if from == to { (from, to + HOT) } else { (from, to) };
                let (from, to) = if place == 3 { (from, to) } else { (to, from) };
                service.execute_with(Transfer { from, to, cents }, meta, options).await
            }
            // Few names, so that it takes again what it had let go.
            5 => {
                let name = format!("{account} at {}", number % 3);
                service.execute_with(Rename { account, name }, meta, options).await
            }
            _ => service.execute_with(Deposit { account, cents }, meta, options).await,
        }
    }
}

/// Every other account is hot; the cold ones see a few commands in all.
fn account(Ask { round, number }: Ask) -> u64 {
    match number % 2 {
        0 => number / 2 % HOT,
        _ => 2 * HOT + round * 100 + number / 2 % 100,
    }
}

fn tenant(number: u128) -> Result<TenantId, Invalid> {
    TenantId::new(Uuid::from_u128(number))
}
