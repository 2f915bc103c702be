//! The end: what is in the database now.

use sequor::{IdempotencyKey, Store};

use super::{ACME, ORDER, Tale};
use crate::database::Database;
use crate::projection::read_balances;
use crate::show;

impl<S: Store> Tale<'_, S> {
    /// The balances by SQL, the outcome by key, and what survived.
    pub(super) async fn closing(&mut self, database: &Database) -> anyhow::Result<()> {
        self.page
            .step(format_args!("The balances, kept by the same transactions, read with SQL"))?;
        let (mut reader, own) = (database.read().await?, self.own_account());
        let mut out = &mut *self.page.out;
        show::write_heading(&mut out)?;
        read_balances(&mut reader, |balance| match &balance.account {
            account if account == ACME || *account == own => {
                show::write_balance(&balance, &mut out)
            }
            _ => Ok(()),
        })
        .await?;

        self.page.step(format_args!("The outcome by key: what became of North's {ORDER}"))?;
        let key: IdempotencyKey = ORDER.parse()?;
        let mut out = &mut *self.page.out;
        show::outcome(self.bank, self.north, &key, &mut out).await?;

        match self.page.survived() {
            0 => self
                .page
                .line(format_args!("\nRun it again: the keys survive in the {}.", database.noun())),
            survived => self.page.line(format_args!(
                "\n{survived} answers came from what an earlier run did: the keys survived."
            )),
        }
    }
}
