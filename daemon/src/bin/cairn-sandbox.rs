//! The sandbox's helper alone: what `cairn` does as its own helper, in a program that is small enough to start at once.
//! Where it does not lie beside `cairn`, or is of another build, `cairn` is its own helper.

use cairn_harness::sandbox::{HELPER_WORD, sandbox_main};

fn main() -> std::process::ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|word| word == HELPER_WORD) {
        return sandbox_main(args);
    }
    // Said as by anybody who calls it by hand.
    sandbox_main(std::iter::empty())
}
