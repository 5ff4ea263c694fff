//! The needs of an ELF program: its libraries, and the version of glibc.

/// Libraries that every Linux with glibc has.
const SYSTEM: &[&str] = &[
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
/// Size of a program header of 64-bit ELF.
const PROGRAM_HEADER: usize = 56;

/// The needs of one program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    pub libraries: Vec<String>,
    /// Minor version of glibc: 17 for 2.17.
    pub glibc: u32,
}

impl Needs {
    /// Reads the needs of a 64-bit little-endian program.
    ///
    /// # Errors
    /// A message if the bytes are not such a program.
    pub fn of(bytes: &[u8]) -> Result<Self, String> {
        let libraries = needed(bytes).ok_or("this is not a 64-bit ELF program")?;
        Ok(Self { libraries, glibc: newest_glibc(bytes) })
    }

    /// Adds the needs of another program of the package.
    pub fn merge(&mut self, other: Self) {
        self.glibc = self.glibc.max(other.glibc);
        for library in other.libraries {
            if !self.libraries.contains(&library) {
                self.libraries.push(library);
            }
        }
    }

    /// Returns the libraries that a system may lack.
    pub fn foreign(&self) -> Vec<&str> {
        self.libraries.iter().map(String::as_str).filter(|name| !SYSTEM.contains(name)).collect()
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    number(bytes, at).map(|b| u16::from_le_bytes(b).into())
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u64::from_le_bytes)
}

fn usize_at(bytes: &[u8], at: usize) -> Option<usize> {
    u64_at(bytes, at)?.try_into().ok()
}

/// A segment: its type, offset in the file, address in memory and size in the file.
struct Segment {
    kind: u32,
    offset: usize,
    address: usize,
    size: usize,
}

fn segments(bytes: &[u8]) -> Option<Vec<Segment>> {
    // Class 2 is 64 bits, data 1 little-endian.
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let first = usize_at(bytes, 32)?;
    let count = u16_at(bytes, 56)?;
    (0..count)
        .map(|index| {
            let at = first + index * PROGRAM_HEADER;
            Some(Segment {
                kind: u32::from_le_bytes(number(bytes, at)?),
                offset: usize_at(bytes, at + 8)?,
                address: usize_at(bytes, at + 16)?,
                size: usize_at(bytes, at + 32)?,
            })
        })
        .collect()
}

fn needed(bytes: &[u8]) -> Option<Vec<String>> {
    let segments = segments(bytes)?;
    let Some(dynamic) = segments.iter().find(|s| s.kind == PT_DYNAMIC) else {
        return Some(Vec::new());
    };
    let table = bytes.get(dynamic.offset..dynamic.offset + dynamic.size)?;
    let tags =
        || table.chunks_exact(16).filter_map(|tag| Some((u64_at(tag, 0)?, usize_at(tag, 8)?)));
    let address = tags().find(|(tag, _)| *tag == DT_STRTAB)?.1;
    let strings = segments
        .iter()
        .find(|s| s.kind == PT_LOAD && (s.address..s.address + s.size).contains(&address))?;
    let start = strings.offset + (address - strings.address);
    tags()
        .filter(|(tag, _)| *tag == DT_NEEDED)
        .map(|(_, at)| {
            let text = bytes.get(start + at..)?.split(|b| *b == 0).next()?;
            Some(String::from_utf8_lossy(text).into_owned())
        })
        .collect()
}

/// Returns the newest `GLIBC_2.N` among the names of symbol versions.
fn newest_glibc(bytes: &[u8]) -> u32 {
    const PREFIX: &[u8] = b"\0GLIBC_2.";
    let mut newest = 0;
    let mut rest = bytes;
    while let Some(at) = rest.windows(PREFIX.len()).position(|window| window == PREFIX) {
        rest = &rest[at + PREFIX.len()..];
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let version = std::str::from_utf8(&rest[..digits]).ok().and_then(|text| text.parse().ok());
        newest = newest.max(version.unwrap_or(0));
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_version_is_the_newest_named() {
        assert_eq!(newest_glibc(b"x\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.9\0"), 17);
        assert_eq!(newest_glibc(b"GLIBC_2.99 in a text"), 0);
    }

    #[test]
    fn other_files_are_no_programs() {
        assert!(Needs::of(b"#!/bin/sh\n").is_err());
        assert!(Needs::of(b"\x7fELF\x02\x01").is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_test_needs_libc() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needs = Needs::of(&bytes).unwrap();
        assert!(needs.libraries.iter().any(|name| name == "libc.so.6"), "{needs:?}");
        assert!(needs.glibc >= 17, "{needs:?}");
    }
}
