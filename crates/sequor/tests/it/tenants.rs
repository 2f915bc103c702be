//! Tenants: each has keys, accounts and unique values of its own, and no command is without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sequor::ports::ReadLog;
use sequor::{Batch, Envelope, Error, Invalid, Meta, Middleware, Next, Place, Reply, TenantId};
use sequor::{Partition, Position, async_trait};

use crate::bank::{Account, Ask, bank, deposit, key, look, mail, tenant};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    one_key_for_two_tenants_runs_twice,
    one_unique_value_for_two_tenants_is_two,
    a_command_without_a_tenant_is_refused_before_anything,
    middleware_may_find_the_tenant_out,
    middleware_may_find_the_tenant_of_a_batch_out,
    a_batch_of_two_tenants_is_refused,
    a_batch_whose_middleware_finds_two_tenants_is_refused,
    an_issued_command_stays_in_the_tenant,
    an_issued_command_cannot_be_moved_to_another_tenant,
);

async fn one_key_for_two_tenants_runs_twice<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    let mut ids = Vec::new();
    for (number, amount) in [(1, 20), (2, 50)] {
        let meta = || Meta::new(tenant(number));
        bank.execute(Ask::Open { account: "a".into() }, meta()).await.unwrap();
        let receipt = bank.execute(deposit("a", amount), meta().key(key("k"))).await.unwrap();
        assert!(receipt.is_executed());
        assert_eq!(receipt.output.unwrap().cents, amount);
        ids.push(receipt.command_id);
    }
    for (number, id) in [(1, ids[0]), (2, ids[1])] {
        let record = bank.outcome(tenant(number), &key("k")).await.unwrap().unwrap();
        assert_eq!(record.command_id, id);
    }
}

async fn one_unique_value_for_two_tenants_is_two<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    for number in [1, 2] {
        let meta = || Meta::new(tenant(number));
        bank.execute(Ask::Open { account: "a".into() }, meta()).await.unwrap();
        bank.execute(mail("a", "ann@example.org"), meta()).await.unwrap();
    }
}

async fn a_command_without_a_tenant_is_refused_before_anything<H: Home>(store: Watched<H>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&ran);
    let handler = doing(move |_: &Run, _| -> Handling<'_, Run> {
        counts.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(7) })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    for meta in [Meta::default(), Meta::default().key(key("k"))] {
        let missing = bank.execute(run(&[], 1), meta.clone()).await;
        assert!(matches!(missing, Err(Error::Invalid(Invalid::TenantMissing))), "{missing:?}");
        let missing = bank.execute(deposit("a", 1), meta.clone()).await;
        assert!(matches!(missing, Err(Error::Invalid(Invalid::TenantMissing))), "{missing:?}");
        let missing = bank.execute_all(Batch::new().then(run(&[], 1), meta)).await;
        assert!(matches!(missing, Err(Error::Invalid(Invalid::TenantMissing))), "{missing:?}");
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    let log = store.read_after(Partition::ONLY, Position::START, 10).await.unwrap();
    assert!(log.is_empty());
}

#[test]
fn a_nil_tenant_cannot_be_made() {
    let nil = "00000000-0000-0000-0000-000000000000";
    assert_eq!(nil.parse::<TenantId>(), Err(Invalid::TenantNil));
    assert_eq!(TenantId::new(uuid::Uuid::nil()), Err(Invalid::TenantNil));
}

/// Finds the tenant out from the account of the command.
struct ByAccount;

#[async_trait]
impl Middleware for ByAccount {
    async fn handle(&self, envelope: &mut Envelope, next: Next<'_>) -> Result<Reply, Error> {
        let second = envelope.payload().as_str().contains("\"b\"");
        envelope.meta.tenant = Some(tenant(if second { 2 } else { 1 }));
        next.run(envelope).await
    }
}

async fn middleware_may_find_the_tenant_out<H: Home>(store: Watched<H>) {
    let handler = doing(|_: &Run, _| -> Handling<'_, Run> { Box::pin(async { Ok(7) }) });
    let builder = bank(&store).handler(handler).middleware(Place::BeforeTenancy, ByAccount);
    let bank = builder.build().unwrap();
    bank.execute(Ask::Open { account: "b".into() }, Meta::default()).await.unwrap();
    let receipt = bank.execute(deposit("b", 5), Meta::default().key(key("k"))).await.unwrap();
    assert_eq!(receipt.streams[0].stream.tenant, tenant(2));
    assert!(bank.outcome(tenant(2), &key("k")).await.unwrap().is_some());
    assert!(bank.outcome(tenant(1), &key("k")).await.unwrap().is_none());
    bank.execute(run(&["b"], 1), Meta::default().key(key("run"))).await.unwrap();
    assert!(bank.outcome(tenant(2), &key("run")).await.unwrap().is_some());
}

async fn middleware_may_find_the_tenant_of_a_batch_out<H: Home>(store: Watched<H>) {
    let bank = bank(&store).middleware(Place::BeforeTenancy, ByAccount).build().unwrap();
    let batch = Batch::new()
        .then(Ask::Open { account: "b".into() }, Meta::default())
        .then(deposit("b", 5), Meta::default());
    let receipts = bank.execute_all(batch).await.unwrap();
    assert_eq!(receipts[1].streams[0].stream.tenant, tenant(2));
}

async fn a_batch_of_two_tenants_is_refused<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    let batch = Batch::new()
        .then(Ask::Open { account: "a".into() }, Meta::new(tenant(1)))
        .then(Ask::Open { account: "a".into() }, Meta::new(tenant(2)));
    let refused = bank.execute_all(batch).await;
    assert!(matches!(refused, Err(Error::Invalid(Invalid::TenantsDiffer))), "{refused:?}");
    let log = store.read_after(Partition::ONLY, Position::START, 10).await.unwrap();
    assert!(log.is_empty());
}

async fn a_batch_whose_middleware_finds_two_tenants_is_refused<H: Home>(store: Watched<H>) {
    let bank = bank(&store).middleware(Place::BeforeTenancy, ByAccount).build().unwrap();
    let batch = Batch::new()
        .then(Ask::Open { account: "a".into() }, Meta::default())
        .then(Ask::Open { account: "b".into() }, Meta::default());
    let refused = bank.execute_all(batch).await;
    assert!(matches!(refused, Err(Error::Invalid(Invalid::TenantsDiffer))), "{refused:?}");
    let log = store.read_after(Partition::ONLY, Position::START, 10).await.unwrap();
    assert!(log.is_empty());
}

async fn an_issued_command_stays_in_the_tenant<H: Home>(store: Watched<H>) {
    let handler = doing(|_: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            repo.issue(deposit("a", 5), None)?;
            Ok(7)
        })
    });
    let bank = bank(&store).handler(handler).build().unwrap();
    for number in [1, 2] {
        let meta = Meta::new(tenant(number));
        bank.execute(Ask::Open { account: "a".into() }, meta).await.unwrap();
    }
    bank.execute(run(&[], 1), Meta::new(tenant(2))).await.unwrap();
    for (number, cents) in [(1, 0), (2, 5)] {
        let looked = bank.execute(look("a"), Meta::new(tenant(number))).await.unwrap();
        assert_eq!(looked.output.unwrap().cents, cents);
    }
}

async fn an_issued_command_cannot_be_moved_to_another_tenant<H: Home>(store: Watched<H>) {
    let handler = doing(|_: &Run, repo| -> Handling<'_, Run> {
        Box::pin(async move {
            let own = repo.load::<Account>("own").await?;
            repo.guard(own);
            repo.issue(Ask::Open { account: "b".into() }, None)?;
            Ok(7)
        })
    });
    let builder = bank(&store).handler(handler).middleware(Place::BeforeTenancy, ByAccount);
    let bank = builder.build().unwrap();
    let moved = bank.execute(run(&[], 1), Meta::default()).await;
    let Err(Error::Issued { source, .. }) = moved else { panic!("{moved:?}") };
    assert!(matches!(*source, Error::Invalid(Invalid::TenantsDiffer)), "{source:?}");
    let log = store.read_after(Partition::ONLY, Position::START, 10).await.unwrap();
    assert!(log.is_empty());
}
