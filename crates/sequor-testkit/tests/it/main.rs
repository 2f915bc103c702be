//! The checks of the testkit find what they are for, and say so.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

include!("turnstile.rs");

mod events_lock;
mod given;
mod once;
mod scenario;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sequor_bus::CommandService;
use sequor_core::Meta;
use sequor_memory::MemoryStore;

fn service() -> CommandService<MemoryStore> {
    CommandService::builder(MemoryStore::new()).decider::<Turnstile, Ask>().build().unwrap()
}

fn meta() -> Meta {
    Meta::new("018f2f6e-0000-7000-8000-000000000001".parse().unwrap())
}

/// What a check says when it fails.
fn said(check: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(check)).expect_err("the check must fail");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap()
}

/// What a check of a service says when it fails.
async fn said_later(check: impl Future<Output = ()> + Send + 'static) -> String {
    let panic = tokio::spawn(check).await.expect_err("the check must fail").into_panic();
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap()
}
