//! Nothing but the integration tests in `it/`.
