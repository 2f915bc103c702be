//! sequor-testkit
