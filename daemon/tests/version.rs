//! The binary answers. This also has `cargo test` build it, which the workspace's integration tests
//! then use.

#[test]
fn binary_prints_its_version() {
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_cairn")).arg("--version").output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap().trim(),
        format!("cairn {}", env!("CARGO_PKG_VERSION"))
    );
}
