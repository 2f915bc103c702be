//! Accounts that are paid into, and transfers between them.

use std::convert::Infallible;
use std::path::Path;

use sequor::ports::Store;
use sequor::sqlite::SqliteStore;
use sequor::{
    Aggregate, Command, CommandService, Decider, Decision, Error, Event, Handler, InlineProjection,
    Meta, Mode, Options, ProjectionError, Receipt, Repo, StoredEvent, async_trait,
};
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use uuid::Uuid;

pub(crate) const ACCOUNTS: u64 = 10;

#[derive(Command, Serialize, Deserialize)]
#[command(name = "deposit", id = account, output = i64)]
struct Deposit {
    account: u64,
    cents: i64,
}

#[derive(Command, Serialize, Deserialize)]
#[command(name = "transfer", output = i64)]
struct Transfer {
    from: u64,
    to: u64,
    cents: i64,
}

#[derive(Event, Serialize, Deserialize)]
#[event(name = "posted")]
struct Posted {
    cents: i64,
}

#[derive(Clone, Default)]
struct Account(i64);

impl Aggregate for Account {
    const NAME: &str = "account";
    type Event = Posted;
    fn apply(&mut self, posted: &Posted) {
        self.0 += posted.cents;
    }
}

impl Decider<Deposit> for Account {
    fn decide(&self, deposit: &Deposit) -> Result<Decision<Posted, i64>, Infallible> {
        let cents = deposit.cents;
        Ok(Decision::event(Posted { cents }).output(self.0 + cents))
    }
}

struct Transfers;

#[async_trait]
impl<S: Store> Handler<Transfer, S> for Transfers {
    async fn handle(&self, ask: &Transfer, repo: &mut Repo<S>) -> Result<i64, Error<Infallible>> {
        let from = repo.load::<Account>(ask.from).await?;
        let to = repo.load::<Account>(ask.to).await?;
        repo.emit(from, &Posted { cents: -ask.cents })?;
        repo.emit(to, &Posted { cents: ask.cents })?;
        Ok(repo.get(from).0)
    }
}

/// The sum of every account, in the command's own transaction.
struct Sums;

#[async_trait]
impl InlineProjection<SqliteConnection> for Sums {
    fn name(&self) -> &str {
        "sums"
    }

    async fn project(
        &self,
        event: &StoredEvent,
        connection: &mut SqliteConnection,
    ) -> Result<(), ProjectionError> {
        let posted: Posted = event.decode()?;
        sqlx::query(
            "INSERT INTO sums (account, cents) VALUES (?, ?)
             ON CONFLICT (account) DO UPDATE SET cents = cents + excluded.cents",
        )
        .bind(event.stream.id.as_str())
        .bind(posted.cents)
        .execute(connection)
        .await?;
        Ok(())
    }
}

pub(crate) async fn open(path: &Path) -> CommandService<SqliteStore> {
    let store = SqliteStore::open_path(path).await.expect("the file opens");
    CommandService::builder(store)
        .decider::<Account, Deposit>()
        .handler::<Transfer>(Transfers)
        .projection(Sums)
        .build()
        .expect("the service is sound")
}

/// Command number `number` of a round: a deposit, or every eighth a transfer. Under one key it is
/// always the same request.
pub(crate) async fn execute(
    service: &CommandService<SqliteStore>,
    round: u64,
    number: u64,
) -> Result<Receipt<i64>, Error<Infallible>> {
    let tenant = sequor::TenantId::new(Uuid::from_u128(7))?;
    let meta = Meta::new(tenant).key(format!("{round}-{number}").parse()?);
    let options = Options::default().mode(Mode::Output);
    let (account, cents) = (number % ACCOUNTS, 1 + i64::try_from(number % 9).unwrap_or(0));
    if number % 8 == 7 {
        let to = (account + 1) % ACCOUNTS;
        let transfer = Transfer { from: account, to, cents };
        return service.execute_with(transfer, meta, options).await;
    }
    service.execute_with(Deposit { account, cents }, meta, options).await
}
