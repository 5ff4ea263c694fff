//! Lines that mend what a check of the machine found.

/// Returns the line that installs a package, for the distribution that `os_release` describes.
pub fn install(package: &str, os_release: &str) -> String {
    if cfg!(target_os = "macos") {
        return format!("brew install {package}");
    }
    let of = |key: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    let names = format!("{} {}", of("ID"), of("ID_LIKE"));
    let manager = names.split_whitespace().find_map(|name| {
        Some(match name {
            "debian" | "ubuntu" => "sudo apt install",
            "fedora" | "rhel" | "centos" => "sudo dnf install",
            "suse" | "opensuse" => "sudo zypper install",
            "arch" => "sudo pacman -S",
            "alpine" => "sudo apk add",
            "gentoo" => "sudo emerge",
            "void" => "sudo xbps-install",
            "nixos" => "nix-shell -p",
            _ => return None,
        })
    });
    match manager {
        Some(manager) => format!("{manager} {package}"),
        None => format!("install {package} with the package manager of this system"),
    }
}

/// Returns the description of this machine's distribution; empty if there is none.
pub fn os_release() -> String {
    let files = ["/etc/os-release", "/usr/lib/os-release"];
    files.iter().find_map(|file| std::fs::read_to_string(file).ok()).unwrap_or_default()
}

/// The kernel's switches that forbid user namespaces, with the value that does and the line that
/// mends it. bubblewrap needs user namespaces.
pub const NAMESPACE_SWITCHES: &[(&str, u64, &str)] = &[
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        0,
        "sudo sysctl kernel.unprivileged_userns_clone=1",
    ),
    ("/proc/sys/user/max_user_namespaces", 0, "sudo sysctl user.max_user_namespaces=15000"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        1,
        "put AppArmor's rule for cairn in place: docs/guide/install.md, or the .deb, which has it",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn package_is_installed_with_the_manager_of_the_distribution() {
        for (os_release, line) in [
            ("NAME=\"Debian GNU/Linux\"\nID=debian\n", "sudo apt install git"),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "sudo apt install git"),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "sudo dnf install git"),
            ("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "sudo zypper install git"),
            ("ID=arch\n", "sudo pacman -S git"),
            ("ID=alpine\n", "sudo apk add git"),
            ("", "install git with the package manager of this system"),
            ("IDEAL=debian\n", "install git with the package manager of this system"),
        ] {
            assert_eq!(install("git", os_release), line, "{os_release}");
        }
    }
}
