//! Empty library; the integration tests are in `it/`.
