//! What became of the command under a key.

use sequor::ports::Clock;
use sequor::record::RecordState;
use sequor::{Actor, CommandId};
use sequor_testkit::{ManualClock, SequentialIds};

use crate::bank::{Balance, bank, deposit, key, keyed, open, tenant, withdraw};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    a_known_key_tells_everything_about_its_command,
    an_unknown_and_a_rejected_key_tell_nothing,
);

async fn a_known_key_tells_everything_about_its_command<H: Home>(store: Watched<H>) {
    let clock = ManualClock::default();
    let builder = bank(&store).clock(clock.clone()).ids(SequentialIds::default());
    let bank = builder.build().unwrap();
    open(&bank, &["a"]).await;
    let meta = keyed("k").actor(Actor::new("ann").unwrap());
    let receipt = bank.execute(deposit("a", 20), meta).await.unwrap();
    let time = clock.now();
    clock.advance(std::time::Duration::from_secs(60));
    let record = bank.outcome(tenant(1), &key("k")).await.unwrap().unwrap();
    assert_eq!(record.command_id, CommandId(SequentialIds::nth(2)));
    assert_eq!(record.command_id, receipt.command_id);
    assert_eq!(record.command_name.as_str(), "account.deposit");
    assert_eq!((record.recorded_at, receipt.recorded_at), (time, time));
    assert_eq!(record.actor.unwrap().as_str(), "ann");
    assert_eq!((record.streams, record.position), (receipt.streams, receipt.position));
    assert_eq!(record.output.read::<Balance>().ok(), receipt.output);
    assert_eq!(record.state, RecordState::Completed);
}

async fn an_unknown_and_a_rejected_key_tell_nothing<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(withdraw("a", 1), keyed("rejected")).await.unwrap_err();
    bank.execute(deposit("a", 1), keyed("k")).await.unwrap();
    for (number, name) in [(1, "rejected"), (1, "unknown"), (1, "K"), (2, "k")] {
        let outcome = bank.outcome(tenant(number), &key(name)).await.unwrap();
        assert!(outcome.is_none(), "{name} of {number}");
    }
}
