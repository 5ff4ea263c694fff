//! Bodies of the fuzz targets in `fuzz/`, which the integration tests in `it/` run as well.
#![expect(clippy::unwrap_used, reason = "a target fails by panicking")]

pub mod fuzz;
