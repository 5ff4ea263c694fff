//! Reading of command lines.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_tests::fuzz::command_line(data));
