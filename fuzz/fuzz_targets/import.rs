//! Import of traces.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_tests::fuzz::import(data));
