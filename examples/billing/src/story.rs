//! The story: what a key does, told step by step, each line read back from the store.

mod page;
mod run;

mod keys;
mod refusal;
mod rivals;

mod closing;

use std::io::Write;

use anyhow::Context;
use sequor::{Error, IdempotencyKey, Meta, Options, Receipt, Store, TenantId};
use uuid::Uuid;

use crate::conflicts::Conflicts;
use crate::database::{Bank, Database};
use crate::domain::{Charge, Charged, Open, Refused};
use crate::money::Amount;
use page::Page;

pub(crate) use run::{Begin, Story};

/// The account of the first part, at both tenants.
const ACME: &str = "acme";
/// The key of the charge that everything turns on.
const ORDER: &str = "order-1001";

/// What the chapters share.
struct Tale<'t, S: Store> {
    bank: &'t Bank<S>,
    conflicts: &'t Conflicts,
    page: Page<'t>,
    /// 1 on a fresh database.
    run: u64,
    north: TenantId,
    south: TenantId,
}

/// Tells the story on a database, and checks nothing: it prints what comes back.
pub(crate) async fn tell<S: Store>(
    bank: &Bank<S>,
    database: &Database,
    conflicts: &Conflicts,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let north = TenantId::new(Uuid::from_u128(0x018f_2f6e_0000_7000_8000_0000_0000_0001))?;
    let south = TenantId::new(Uuid::from_u128(0x018f_2f6e_0000_7000_8000_0000_0000_0002))?;
    let begun = run::begin(bank, north).await?;
    let run = begun.output.context("an execution has an output")?;
    let page = Page::new(out, begun.recorded_at);
    let mut tale = Tale { bank, conflicts, page, run, north, south };

    tale.title(database)?;
    tale.one_charge().await?;
    tale.fifty_duplicates().await?;
    let seen = tale.two_rivals().await?;
    tale.stale_version(seen).await?;
    tale.refused_charge().await?;
    tale.closing(database).await
}

impl<S: Store> Tale<'_, S> {
    fn title(&mut self, database: &Database) -> anyhow::Result<()> {
        let noun = database.noun();
        match self.run {
            1 => self.page.line(format_args!("{database}: first run on this {noun}"))?,
            run => self.page.line(format_args!(
                "{database}: run {run} on this {noun}; keys of earlier runs are still known"
            ))?,
        }
        self.page.line(format_args!(
            "Two tenants, North and South. Each answer names the command that took effect (the end \
             of its\nid), the account's version after it, its position in the store, and its output."
        ))
    }

    /// The account that only this run knows, for what must happen anew each time.
    fn own_account(&self) -> String {
        format!("run-{}", self.run)
    }

    /// A key that only this run uses.
    fn own_key(&self, intent: &str) -> anyhow::Result<IdempotencyKey> {
        Ok(format!("{intent}-run-{}", self.run).parse()?)
    }

    async fn open(
        &self,
        tenant: TenantId,
        account: &str,
        limit_cents: i64,
    ) -> anyhow::Result<Result<Receipt<()>, Error<Refused>>> {
        let key = format!("open-{account}").parse()?;
        let (account, owner) = (account.to_owned(), "Acme Travel".to_owned());
        let open = Open { account, owner, limit_cents };
        Ok(self.bank.execute(open, Meta::new(tenant).key(key)).await)
    }

    async fn charge(&self, charge: Charge, meta: Meta, options: Options) -> Answer<Charged> {
        self.bank.execute_with(charge, meta, options).await
    }
}

/// What comes back for a command on an account.
type Answer<O> = Result<Receipt<O>, Error<Refused>>;

fn charge(account: &str, cents: i64) -> anyhow::Result<Charge> {
    Ok(Charge { account: account.to_owned(), cents: amount(cents)? })
}

fn amount(cents: i64) -> anyhow::Result<Amount> {
    Amount::new(cents).with_context(|| format!("{cents} is no amount"))
}
