//! Reads back what a store holds.

use sequor_core::ports::ReadLog;
use sequor_core::{Partition, Position, StoredEvent};

/// Events of one page.
const PAGE: usize = 1_000;

/// All events of a partition for which `wanted` holds, in the order of their positions.
pub(crate) async fn events<S: ReadLog>(
    store: &S,
    partition: Partition,
    wanted: impl Fn(&StoredEvent) -> bool,
) -> Vec<StoredEvent> {
    let (mut found, mut after) = (Vec::new(), Position::START);
    loop {
        let page = store.read_after(partition, after, PAGE).await;
        let page = page.unwrap_or_else(|error| panic!("the log cannot be read: {error}"));
        let Some(last) = page.last() else { return found };
        after = last.position;
        found.extend(page.into_iter().filter(|event| wanted(event)));
    }
}
