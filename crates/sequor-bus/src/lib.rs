//! The spine: from a command to a receipt.
//!
//! *For:* running commands through one chain (tenancy → idempotency → authz → filters → retry →
//! load → decide → commit), in this order, whatever the store.
//! *Never:* SQL, HTTP, or a decision of the domain.
//! *Start here:* [`CommandService`] in `service.rs` is the whole of it on one screen; `dispatch.rs`
//! is what stands at the chain's end.

mod service;

mod batch;
mod envelope;
mod reply;

mod middleware;

mod dispatch;
mod repo;
mod retry;
mod route;

mod cache;
mod lanes;

mod builder;
mod clock;
mod error;
pub mod idempotency;

pub use batch::Batch;
pub use builder::{BuildError, Builder};
pub use clock::{RandomIds, SystemClock};
pub use envelope::{Envelope, Options};
pub use error::RepoError;
pub use idempotency::{Idempotency, Mode, OnReuse, ReplayAccess, is_replay};
pub use middleware::{AllowAll, Authorize, Filter, Middleware, Next, Place};
pub use reply::Reply;
pub use repo::{Ref, Repo};
pub use retry::Retry;
pub use route::Handler;
pub use service::CommandService;
