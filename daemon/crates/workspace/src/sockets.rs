//! Unix sockets in a workspace at which a program of outside may listen.

use std::{collections::HashSet, path::Path};

/// The sockets of this machine, one in each line, the path last.
const LISTED: &str = "/proc/net/unix";
/// Words of a line before the path.
const COLUMNS: usize = 7;

/// Returns those of these paths at which something may listen now. A socket file that is left over
/// does not count: its next server removes it.
pub(crate) fn live(sockets: Vec<String>) -> Vec<String> {
    if sockets.is_empty() {
        return sockets;
    }
    match std::fs::read_to_string(LISTED) {
        Ok(listed) => listed_in(&listed, sockets),
        // Without the list each may be in use.
        Err(_) => sockets,
    }
}

/// A path is listed as its server wrote it, often relative to its own folder, so that names are
/// compared.
fn listed_in(listed: &str, mut sockets: Vec<String>) -> Vec<String> {
    let names: HashSet<&str> = listed.lines().filter_map(name_in).collect();
    sockets.retain(|path| {
        let name = Path::new(path).file_name().and_then(|name| name.to_str());
        name.is_none_or(|name| names.contains(name))
    });
    sockets
}

/// Returns the name of a socket in a line of the list; none for one without a path.
fn name_in(line: &str) -> Option<&str> {
    let mut rest = line;
    for _ in 0..COLUMNS {
        rest = rest.trim_start();
        rest = rest.get(rest.find(char::is_whitespace)?..)?;
    }
    let path = rest.trim_start();
    Some(path.rsplit_once('/').map_or(path, |(_, name)| name)).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_without_a_server_are_left_out() {
        let listed = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 22731 /srv/app/tmp/a.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 22732 with space.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 11\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 22733 @hidden\n";
        let paths = ["tmp/a.sock", "b.sock", "x/with space.sock", "hidden"].map(str::to_owned);
        assert_eq!(listed_in(listed, paths.to_vec()), ["tmp/a.sock", "x/with space.sock"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn server_of_this_machine_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("{}.sock", uuid::Uuid::now_v7());
        let sockets = vec![name.clone(), format!("left-{name}")];
        let server = std::os::unix::net::UnixListener::bind(dir.path().join(&name)).unwrap();
        assert_eq!(live(sockets.clone()), [name.as_str()]);
        drop(server);
        assert!(live(sockets).is_empty());
    }
}
