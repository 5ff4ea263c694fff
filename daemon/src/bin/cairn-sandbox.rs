//! The sandbox helper on its own, as a program small enough to start quickly. If it is missing
//! beside `cairn`, or from another build, `cairn` serves as its own helper.

use cairn_sandbox::{HELPER_WORD, sandbox_main};

fn main() -> std::process::ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|word| word == HELPER_WORD) {
        return sandbox_main(args);
    }
    // Same behaviour as for any caller without arguments.
    sandbox_main(std::iter::empty())
}
