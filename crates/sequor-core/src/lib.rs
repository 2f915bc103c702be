//! sequor-core
