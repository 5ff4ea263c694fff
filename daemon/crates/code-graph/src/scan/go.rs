//! Go: the package clause and the imports, which precede all other declarations.

use super::collect::Collector;
use super::read::{Comments, Reader};
use crate::import::{Import, ImportKind, MAX_IMPORTS};

pub fn scan<'a>(text: &'a [u8], out: &mut Collector<'a>) {
    let mut reader = Reader::new(text, 0, Comments::Slashes);
    if !reader.eat_word(b"package") {
        return;
    }
    out.file.package = reader.ident().map(str::to_owned);
    loop {
        reader.eat(b";");
        if !reader.eat_word(b"import") {
            return;
        }
        if !reader.eat(b"(") {
            if spec(&mut reader, out).is_none() {
                return;
            }
            continue;
        }
        while out.file.imports.len() < MAX_IMPORTS {
            reader.eat(b";");
            if reader.eat(b")") {
                break;
            }
            if spec(&mut reader, out).is_none() {
                return;
            }
        }
    }
}

fn spec<'a>(reader: &mut Reader<'a>, out: &mut Collector<'a>) -> Option<()> {
    reader.skip_blank();
    let start = reader.at;
    let alias = if reader.eat(b".") { Some(".") } else { reader.ident() };
    let mut import = Import::new(ImportKind::Static, reader.string(b"\"`")?, out.line_at(start));
    import.alias = alias.map(str::to_owned);
    out.push(import);
    Some(())
}
