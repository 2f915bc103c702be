//! The second part: two charges race for one account.

use anyhow::Context;
use sequor::{Meta, Options, Store, Version};

use super::{Tale, charge};

impl<S: Store> Tale<'_, S> {
    /// Two charges at once; the bus decides them in order, and needs no second try. Gives the
    /// version that both callers saw.
    pub(super) async fn two_rivals(&mut self) -> anyhow::Result<Version> {
        let account = self.own_account();
        self.page.step(format_args!("North opens account {account} for this run, limit 100.00"))?;
        let opened = self.open(self.north, &account, 10_000).await??;
        self.page.receipt(&opened)?;
        let seen = opened.streams.first().context("an opening writes its account")?.version;

        self.page.step(format_args!(
            "Two charges of 30.00 race for it: the second is decided on what the first one makes"
        ))?;
        let before = self.conflicts.count();
        let one = Meta::new(self.north).key(self.own_key("race-a")?);
        let two = Meta::new(self.north).key(self.own_key("race-b")?);
        let order = charge(&account, 3_000)?;
        // Invariant: on one thread the second charge arrives before the first one's commit is
        // answered, so that they meet each time, not only with luck.
        let (one, two) = tokio::join!(
            self.charge(order.clone(), one, Options::default()),
            self.charge(order, two, Options::default()),
        );
        // Whoever won comes first.
        let mut receipts = [one?, two?];
        receipts.sort_by_key(|receipt| receipt.position);
        receipts.iter().try_for_each(|receipt| self.page.receipt(receipt))?;
        let met = self.conflicts.count() - before;
        self.page.note(format_args!("conflicts that the bus met on the way: {met}"))?;
        Ok(seen)
    }

    /// Who insists on a version gets the conflict instead.
    pub(super) async fn stale_version(&mut self, seen: Version) -> anyhow::Result<()> {
        let account = self.own_account();
        self.page.step(format_args!(
            "A third charge insists on v{seen}, which its caller saw: no retry"
        ))?;
        let meta = Meta::new(self.north).key(self.own_key("race-c")?);
        let options = Options::default().if_version(seen);
        let stale = self.charge(charge(&account, 3_000)?, meta, options).await;
        self.page.answer(stale)
    }
}
