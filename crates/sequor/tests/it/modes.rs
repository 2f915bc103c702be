//! What a known key gets: by mode, and when the request is another one.

use sequor::Command;
use sequor::Timestamp;
use sequor::{Error, Idempotency, Json, Mode, OnReuse, Options, is_replay};
use sequor_testkit::{ManualClock, Scenario};

use crate::bank::{
    Ask, bank, cents, deposit, key, keyed, log_of, look, meta, open, tenant, withdraw,
};
use crate::doing::{Handling, Run, doing, run};
use crate::home::Home;
use crate::watched::Watched;

on_every_store!(
    a_no_op_names_the_first_command_and_shows_no_output,
    strict_answers_with_an_error_that_is_a_replay,
    output_replays_exactly_what_the_first_caller_got,
    a_call_may_ask_for_another_mode,
    another_payload_is_key_reused_in_every_mode,
    another_command_under_the_key_is_key_reused,
    the_switch_for_older_systems_answers_reuse_with_a_no_op,
    volatile_fields_do_not_make_another_request,
    the_order_of_an_array_makes_another_request,
    a_command_without_events_is_replayed_too,
    without_a_key_everything_runs_again,
    a_clock_that_is_set_back_or_ahead_changes_nothing_about_a_key,
);

fn mode(mode: Mode) -> Options {
    Options::default().mode(mode)
}

async fn a_no_op_names_the_first_command_and_shows_no_output<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let first = bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    assert!(first.is_executed() && first.output.is_some());
    let again = bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    assert!(again.is_replayed());
    assert_eq!(again.output, None);
    assert_eq!(again.command_id, first.command_id);
    assert_eq!(again.command_name.as_str(), "account.deposit");
    assert_eq!(again.recorded_at, first.recorded_at);
    assert_eq!((again.streams, again.position), (first.streams, first.position));
    assert_eq!(again.epoch, first.epoch);
    assert_eq!(cents(&bank, "a").await, 20);
}

async fn strict_answers_with_an_error_that_is_a_replay<H: Home>(store: Watched<H>) {
    let strict = Idempotency { mode: Mode::Strict, ..Idempotency::default() };
    let bank = bank(&store).idempotency(strict).build().unwrap();
    open(&bank, &["a"]).await;
    let first = bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    let error = bank.execute(deposit("a", 20), keyed("k")).await.unwrap_err();
    assert!(is_replay(&error), "{error}");
    let Error::Replay(replay) = error else { panic!("{error}") };
    assert_eq!(replay.command_id, first.command_id);
    assert_eq!(replay.command_name, first.command_name);
    assert_eq!(replay.recorded_at, first.recorded_at);
}

async fn output_replays_exactly_what_the_first_caller_got<H: Home>(store: Watched<H>) {
    let output = Idempotency { mode: Mode::Output, ..Idempotency::default() };
    let bank = bank(&store).idempotency(output).build().unwrap();
    open(&bank, &["a"]).await;
    let first = bank.execute(deposit("a", i64::MAX), keyed("k")).await.unwrap();
    bank.execute(withdraw("a", 1), meta()).await.unwrap();
    let again = bank.execute(deposit("a", i64::MAX), keyed("k")).await.unwrap();
    assert!(again.is_replayed());
    let balance = again.output.clone().unwrap();
    assert_eq!((balance.cents, balance.large), (i64::MAX, u64::MAX));
    assert_eq!(Json::of(&again.output).unwrap(), Json::of(&first.output).unwrap());
}

async fn a_call_may_ask_for_another_mode<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let first = bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    let strict = bank.execute_with(deposit("a", 20), keyed("k"), mode(Mode::Strict)).await;
    assert!(is_replay(&strict.unwrap_err()));
    let output = bank.execute_with(deposit("a", 20), keyed("k"), mode(Mode::Output)).await;
    assert_eq!(output.unwrap().output, first.output);
}

async fn another_payload_is_key_reused_in_every_mode<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let first = bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    for mode in [Mode::NoOp, Mode::Strict, Mode::Output] {
        let options = Options::default().mode(mode);
        let reused = bank.execute_with(deposit("a", 50), keyed("k"), options).await;
        let Err(Error::KeyReused { command_id, command_name }) = reused else { panic!("{mode:?}") };
        assert_eq!(command_id, first.command_id);
        assert_eq!(command_name, first.command_name);
    }
    assert_eq!(cents(&bank, "a").await, 20);
    let record = bank.outcome(tenant(1), &key("k")).await.unwrap().unwrap();
    let asked = deposit("a", 20);
    assert_eq!(record.fingerprint, asked.fingerprint(&asked.encode().unwrap()).ok());
}

async fn another_command_under_the_key_is_key_reused<H: Home>(store: Watched<H>) {
    let handler = doing(|_: &Run, _| -> Handling<'_, Run> { Box::pin(async { Ok(7) }) });
    let bank = bank(&store).handler(handler).build().unwrap();
    open(&bank, &["a"]).await;
    bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    let decider = bank.execute(withdraw("a", 20), keyed("k")).await;
    assert!(matches!(decider, Err(Error::KeyReused { .. })), "{decider:?}");
    let handler = bank.execute(run(&[], 20), keyed("k")).await;
    assert!(matches!(handler, Err(Error::KeyReused { .. })), "{handler:?}");
    assert_eq!(cents(&bank, "a").await, 20);
}

async fn the_switch_for_older_systems_answers_reuse_with_a_no_op<H: Home>(store: Watched<H>) {
    let settings =
        Idempotency { mode: Mode::Output, on_reuse: OnReuse::NoOp, ..Idempotency::default() };
    let bank = bank(&store).idempotency(settings).build().unwrap();
    open(&bank, &["a"]).await;
    let first = bank.execute(deposit("a", 20), keyed("k")).await.unwrap();
    let reused = bank.execute(deposit("a", 50), keyed("k")).await.unwrap();
    assert!(reused.is_replayed());
    assert_eq!((reused.command_id, reused.output), (first.command_id, None));
    assert_eq!(cents(&bank, "a").await, 20);
}

async fn volatile_fields_do_not_make_another_request<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let sent = |sent_at| Ask::Deposit { account: "a".into(), cents: 5, tags: vec![], sent_at };
    bank.execute(sent(1), keyed("k")).await.unwrap();
    assert!(bank.execute(sent(2), keyed("k")).await.unwrap().is_replayed());
}

async fn the_order_of_an_array_makes_another_request<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let tagged = |tags: [&str; 2]| Ask::Deposit {
        account: "a".into(),
        cents: 5,
        tags: tags.map(str::to_owned).to_vec(),
        sent_at: 0,
    };
    bank.execute(tagged(["x", "y"]), keyed("k")).await.unwrap();
    let reordered = bank.execute(tagged(["y", "x"]), keyed("k")).await;
    assert!(matches!(reordered, Err(Error::KeyReused { .. })), "{reordered:?}");
}

async fn a_command_without_events_is_replayed_too<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    let first = bank.execute(look("a"), keyed("k")).await.unwrap();
    assert_eq!((first.position, first.streams.len()), (None, 1));
    bank.execute(deposit("a", 20), meta()).await.unwrap();
    let again = Scenario::on(&bank).when_with(look("a"), keyed("k"), mode(Mode::Output)).await;
    again.then_replayed().then_output(&first.output.unwrap());
}

async fn without_a_key_everything_runs_again<H: Home>(store: Watched<H>) {
    let bank = bank(&store).build().unwrap();
    open(&bank, &["a"]).await;
    for _ in 0..3 {
        assert!(bank.execute(deposit("a", 20), meta()).await.unwrap().is_executed());
    }
    assert_eq!(cents(&bank, "a").await, 60);
    let log = log_of(&store, tenant(1)).await;
    assert_eq!(log.len(), 4);
}

/// Whatever order the fields of a request came in, the command that was read from it is the same.
#[test]
fn the_order_of_fields_does_not_make_another_request() {
    let read = |payload| {
        let ask = Ask::decode("account.deposit", payload).unwrap();
        ask.fingerprint(&ask.encode().unwrap()).unwrap()
    };
    let one = read(r#"{"account":"a","cents":5,"tags":["x"],"sent_at":1}"#);
    assert_eq!(one, read(r#"{"tags":["x"],"sent_at":9,"cents":5,"account":"a"}"#));
    assert_ne!(one, read(r#"{"account":"a","cents":6,"tags":["x"]}"#));
}

async fn a_clock_that_is_set_back_or_ahead_changes_nothing_about_a_key<H: Home>(store: Watched<H>) {
    const NOON: i64 = 1_800_000_000_000_000;
    const MINUTE: i64 = 60_000_000;
    let at = |micros| Timestamp::from_micros(micros).unwrap();
    for shift in [-2 * 24 * 60, -10, 10, 2 * 24 * 60] {
        let bank = |time| bank(&store).clock(ManualClock::at(at(time))).build().unwrap();
        let (account, now) = (format!("a{shift}"), bank(NOON));
        open(&now, &[&account]).await;
        let first = now.execute(deposit(&account, 20), keyed(&account)).await.unwrap();
        let shifted = bank(NOON + shift * MINUTE);
        let again = shifted.execute(deposit(&account, 20), keyed(&account)).await.unwrap();
        assert!(again.is_replayed());
        assert_eq!((again.command_id, again.recorded_at), (first.command_id, at(NOON)));
        shifted.execute(deposit(&account, 1), meta()).await.unwrap();
        assert_eq!(cents(&now, &account).await, 21);
    }
}
