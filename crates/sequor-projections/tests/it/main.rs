//! Runners on the reference store.
