//! The first part: one charge and its retries, one by one and fifty at once.

use anyhow::Context;
use sequor::{Meta, Mode, Options, Receipt, Store};
use tokio::task::JoinSet;

use super::{ACME, Answer, ORDER, Tale, charge};
use crate::domain::Charged;

/// Enough to be sure that nobody was lucky.
const DUPLICATES: usize = 50;

impl<S: Store> Tale<'_, S> {
    /// One charge, and what each kind of retry gets.
    pub(super) async fn one_charge(&mut self) -> anyhow::Result<()> {
        let (north, south) = (self.north, self.south);
        let by_key = |tenant| Ok::<_, sequor::Invalid>(Meta::new(tenant).key(ORDER.parse()?));
        let plain = Options::default();
        let order = charge(ACME, 12_000)?;

        self.page
            .step(format_args!("North opens account {ACME}, limit 500.00, key open-{ACME}"))?;
        let opened = self.open(north, ACME, 50_000).await?;
        self.page.answer(opened)?;

        self.page.step(format_args!("North charges 120.00 to {ACME}, key {ORDER}"))?;
        let first = self.charge(order.clone(), by_key(north)?, plain).await;
        self.page.answer(first)?;

        self.page.step(format_args!("The answer got lost: North retries with the same key"))?;
        let retry = self.charge(order.clone(), by_key(north)?, plain).await;
        self.page.answer(retry)?;

        self.page.step(format_args!("A strict retry, for a caller who must know"))?;
        let strict = plain.mode(Mode::Strict);
        let strict = self.charge(order.clone(), by_key(north)?, strict).await;
        self.page.answer(strict)?;

        self.page.step(format_args!("The same key with another amount, 125.00"))?;
        let other = self.charge(charge(ACME, 12_500)?, by_key(north)?, plain).await;
        self.page.answer(other)?;

        self.page.step(format_args!(
            "South has an {ACME} too, and uses the same keys: they are its own"
        ))?;
        let opened = self.open(south, ACME, 50_000).await?;
        self.page.answer(opened)?;
        let theirs = self.charge(order, by_key(south)?, plain).await;
        self.page.answer(theirs)
    }

    /// Many callers ask for the same at once; one of them is executed.
    pub(super) async fn fifty_duplicates(&mut self) -> anyhow::Result<()> {
        self.page.step(format_args!(
            "{DUPLICATES} callers at once: North charges 80.00, key order-1002, and wants the output"
        ))?;
        let mut calls = JoinSet::new();
        for _ in 0..DUPLICATES {
            let (bank, order) = (self.bank.clone(), charge(ACME, 8_000)?);
            let meta = Meta::new(self.north).key("order-1002".parse()?);
            let options = Options::default().mode(Mode::Output);
            calls.spawn(async move { bank.execute_with(order, meta, options).await });
        }
        let answers: Vec<Answer<Charged>> = calls.join_all().await;
        let receipts: Vec<_> = answers.into_iter().collect::<Result<_, _>>()?;
        let executed = receipts.iter().filter(|receipt| receipt.is_executed()).count();
        let replayed = receipts.iter().filter(|receipt| receipt.is_replayed()).count();
        let first = receipts.iter().find(|receipt| receipt.is_executed()).or(receipts.first());
        let first = first.context("fifty callers get fifty answers")?;
        self.page.receipt(first)?;
        let same = if receipts.iter().all(|one| is_same(one, first)) { "yes" } else { "NO" };
        self.page.note(format_args!(
            "{executed} Executed, {replayed} Replayed; \
             the same command, version, position and output in all: {same}"
        ))
    }
}

/// Whether two receipts differ at most in who of them ran.
fn is_same(one: &Receipt<Charged>, other: &Receipt<Charged>) -> bool {
    Receipt { disposition: other.disposition, ..one.clone() } == *other
}
