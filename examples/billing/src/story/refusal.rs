//! The third part: a refusal leaves no record, so a retry is decided anew.

use sequor::{Meta, Options, Store};

use super::{Tale, amount, charge};
use crate::domain::Refund;

impl<S: Store> Tale<'_, S> {
    /// A charge over the limit, room, and the same charge again.
    pub(super) async fn refused_charge(&mut self) -> anyhow::Result<()> {
        let account = self.own_account();
        let key = self.own_key("late")?;
        let meta = Meta::new(self.north).key(key.clone());
        let order = charge(&account, 5_000)?;

        self.page.step(format_args!("North charges 50.00 to {account}, key {key}"))?;
        let refused = self.charge(order.clone(), meta.clone(), Options::default()).await;
        self.page.answer(refused)?;

        self.page.step(format_args!("A refund of 30.00 makes room"))?;
        let refund = Refund { account, cents: amount(3_000)? };
        let refunded = self.bank.execute(refund, Meta::new(self.north)).await;
        self.page.answer(refunded)?;

        self.page
            .step(format_args!("The refused charge again, same key: a refusal leaves no record"))?;
        let again = self.charge(order, meta, Options::default()).await;
        self.page.answer(again)
    }
}
