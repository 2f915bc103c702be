//! sequor-memory
