//! How long a writer waits for an open transaction.

use std::time::Duration;

use sequor_core::StoreError;
use sequor_core::ports::Transact;
use sequor_memory::MemoryStore;

use crate::tenant;

#[tokio::test]
async fn a_writer_that_waits_too_long_is_told_so() {
    let store = MemoryStore::new().writer_wait_max(Duration::ZERO);
    let open = store.begin(tenant()).await.unwrap();
    assert!(matches!(store.begin(tenant()).await, Err(StoreError::Busy)));
    drop(open);
    assert!(store.begin(tenant()).await.is_ok());
}
