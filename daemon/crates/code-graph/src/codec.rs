//! The stored form of a file's imports: a version, then numbers of variable length and texts.

use crate::import::{FileImports, Import, ImportKind, ImportedName, MAX_IMPORTS, MAX_NAMES};

const VERSION: u8 = 1;

impl FileImports {
    /// The compact form, which [`Self::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_optional(&mut out, self.package.as_deref());
        put(&mut out, self.declared.len() as u64);
        for name in &self.declared {
            put_text(&mut out, name);
        }
        put(&mut out, self.used.len() as u64);
        for hash in &self.used {
            out.extend(hash.to_le_bytes());
        }
        put(&mut out, self.imports.len() as u64);
        for import in &self.imports {
            put_import(&mut out, import);
        }
        out
    }

    /// `None` if the bytes are of another version or damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = bytes.strip_prefix(&[VERSION])?;
        let input = &mut bytes;
        let package = optional(input)?;
        let declared = (0..count(input)?).map(|_| text(input)).collect::<Option<_>>()?;
        let used = (0..count(input)?).map(|_| hash(input)).collect::<Option<_>>()?;
        let total = count(input)?;
        if total > MAX_IMPORTS {
            return None;
        }
        let imports = (0..total).map(|_| import(input)).collect::<Option<_>>()?;
        input.is_empty().then_some(Self { imports, package, declared, used })
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// An absent text is 0, a text is its length and one.
fn put_optional(out: &mut Vec<u8>, text: Option<&str>) {
    put(out, text.map_or(0, |t| t.len() as u64 + 1));
    out.extend(text.unwrap_or_default().as_bytes());
}

fn put_import(out: &mut Vec<u8>, import: &Import) {
    out.push((import.kind as u8) << 1 | u8::from(import.is_type_only));
    put(out, u64::from(import.line));
    put_text(out, &import.specifier);
    put_optional(out, import.alias.as_deref());
    put(out, import.names.len() as u64);
    for name in &import.names {
        put_text(out, &name.name);
        put_optional(out, name.alias.as_deref());
    }
}

fn number(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = input.split_first()?;
        *input = rest;
        value |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// A number of items, each of which takes at least one byte of the rest.
fn count(input: &mut &[u8]) -> Option<usize> {
    let value = usize::try_from(number(input)?).ok()?;
    (value <= input.len()).then_some(value)
}

fn take_text(input: &mut &[u8], length: usize) -> Option<String> {
    let (head, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(std::str::from_utf8(head).ok()?.to_owned())
}

fn text(input: &mut &[u8]) -> Option<String> {
    let length = count(input)?;
    take_text(input, length)
}

fn optional(input: &mut &[u8]) -> Option<Option<String>> {
    match usize::try_from(number(input)?).ok()? {
        0 => Some(None),
        length => take_text(input, length - 1).map(Some),
    }
}

fn hash(input: &mut &[u8]) -> Option<u32> {
    let (head, rest) = input.split_first_chunk::<4>()?;
    *input = rest;
    Some(u32::from_le_bytes(*head))
}

fn import(input: &mut &[u8]) -> Option<Import> {
    let (first, rest) = input.split_first()?;
    *input = rest;
    let kind = *ImportKind::ALL.get(usize::from(first >> 1))?;
    let line = u32::try_from(number(input)?).ok()?;
    let specifier = text(input)?;
    let alias = optional(input)?;
    let total = count(input)?;
    if total > MAX_NAMES {
        return None;
    }
    let mut names = Vec::with_capacity(total);
    for _ in 0..total {
        names.push(ImportedName { name: text(input)?, alias: optional(input)? });
    }
    Some(Import { specifier, kind, names, alias, line, is_type_only: first & 1 == 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_survive_encoding_and_damage_is_refused() {
        let mut import = Import::new(ImportKind::ReExport, "./x", 70_000);
        import.names = vec![ImportedName::new("a"), ImportedName::renamed("b", "c")];
        import.alias = Some(String::new());
        import.is_type_only = true;
        let file = FileImports {
            imports: vec![import, Import::new(ImportKind::SamePackage, "é", 0)],
            package: Some("p.q".to_owned()),
            declared: vec!["T".to_owned()],
            used: vec![1, u32::MAX],
        };
        let bytes = file.encode();
        assert_eq!(FileImports::decode(&bytes), Some(file));
        for length in 0..bytes.len() {
            assert_eq!(FileImports::decode(&bytes[..length]), None, "{length}");
        }
        assert_eq!(FileImports::decode(&FileImports::default().encode()), Some(Default::default()));
    }
}
