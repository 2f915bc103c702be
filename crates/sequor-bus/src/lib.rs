//! sequor-bus
