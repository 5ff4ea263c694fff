//! Frames of a client that is connected.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_tests::fuzz::frame(data));
