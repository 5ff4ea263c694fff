//! Manifests of projects.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_tests::fuzz::manifest(data));
