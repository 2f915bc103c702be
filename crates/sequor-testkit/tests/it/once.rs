//! The proof that a command takes effect once.

use sequor_core::Meta;
use sequor_testkit::assert_once;

use crate::{Ask, meta, said_later, service};

fn keyed() -> Meta {
    meta().key("fare-1".parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_with_a_key_passes() {
    let receipt = assert_once(&service(), Ask::pay("north", 100), keyed(), 16).await;
    assert!(receipt.is_executed());
    assert_eq!(receipt.output, Some(0));
}

#[tokio::test]
async fn a_command_without_events_passes() {
    let receipt = assert_once(&service(), Ask::pay("north", 0), keyed(), 4).await;
    assert_eq!(receipt.position, None);
}

#[tokio::test]
async fn a_command_without_a_key_is_refused() {
    let said = said_later(async {
        assert_once(&service(), Ask::pay("north", 0), meta(), 2).await;
    });
    assert!(said.await.starts_with("give `meta` a key"));
}

#[tokio::test]
async fn a_used_key_is_told() {
    let said = said_later(async {
        let service = service();
        service.execute(Ask::pay("north", 1), keyed()).await.unwrap();
        assert_once(&service, Ask::pay("north", 1), keyed(), 2).await;
    });
    assert!(said.await.starts_with("the key was used before, by command"));
}

#[tokio::test]
async fn a_command_that_fails_is_told() {
    let said = said_later(async {
        assert_once(&service(), Ask::pass("north"), keyed(), 1).await;
    });
    let said = said.await;
    assert!(said.contains("`turnstile.pass` failed: rejected: NotPaid"), "{said}");
}
