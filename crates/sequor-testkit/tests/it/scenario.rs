//! Given, when, then for services.

use sequor_bus::{Mode, Options};
use sequor_core::Error;
use sequor_testkit::Scenario;

use crate::{Ask, No, Turned, meta, said_later, service};

#[tokio::test]
async fn a_scenario_reads_back_what_the_command_wrote() {
    let service = service();
    Scenario::on(&service)
        .given(Ask::pay("north", 100), meta())
        .when(Ask::pass("north"), meta().key("pass-1".parse().unwrap()))
        .await
        .then_executed()
        .then_output(&1)
        .then_events([Turned::Passed])
        .await;
}

#[tokio::test]
async fn a_replay_names_the_events_of_the_first_execution() {
    let (service, keyed) = (service(), || meta().key("pay-1".parse().unwrap()));
    let retry = Scenario::on(&service).given(Ask::pay("north", 100), keyed());
    let replayed = retry.when(Ask::pay("north", 100), keyed()).await;
    let replayed = replayed.then_replayed().then_no_output();
    replayed.then_events([Turned::Paid { cents: 100 }]).await;
    let again = Scenario::on(&service);
    let again =
        again.when_with(Ask::pay("north", 100), keyed(), Options::default().mode(Mode::Output));
    again.await.then_replayed().then_output(&0);
}

#[tokio::test]
async fn rejections_and_errors_are_checked() {
    let service = service();
    let scenario = Scenario::on(&service).when(Ask::pass("north"), meta()).await;
    let scenario = scenario.then_rejected(|no| matches!(no, No::NotPaid));
    scenario.then_error(|error| matches!(error, Error::Rejected(_)));
}

#[tokio::test]
async fn a_failing_given_names_its_command_and_its_line() {
    let said = said_later(async {
        let service = service();
        let scenario = Scenario::on(&service).given(Ask::pass("north"), meta());
        let _ = scenario.when(Ask::pass("north"), meta()).await;
    });
    let said = said.await;
    let names = said.contains("`turnstile.pass`") && said.contains("scenario.rs:");
    assert!(names && said.contains("NotPaid"), "{said}");
}

#[tokio::test]
async fn a_failed_check_tells_what_came_instead() {
    let executed = said_later(async {
        let service = service();
        Scenario::on(&service).when(Ask::pass("north"), meta()).await.then_executed();
    });
    assert_eq!(executed.await, "the command failed: rejected: NotPaid");
    let replayed = said_later(async {
        let service = service();
        Scenario::on(&service).when(Ask::pay("north", 1), meta()).await.then_replayed();
    });
    let said = replayed.await;
    assert!(said.starts_with("expected Replayed, but the command was Executed as "), "{said}");
    let events = said_later(async {
        let service = service();
        let answered = Scenario::on(&service).when(Ask::pay("north", 1), meta()).await;
        answered.then_events([Turned::Passed]).await;
    });
    let said = events.await;
    assert!(said.contains("- turnstile.passed v1 null\n+ turnstile.paid v1 {"), "{said}");
}
