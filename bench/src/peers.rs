//! Another engine over the same windows: tantivy with split identifiers, English stemming,
//! frequencies only, and one OR query for the best 200. Built with `--features peers`.

use std::path::Path;

use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{Language, LowerCaser, SimpleTokenizer, Stemmer, TextAnalyzer};
use tantivy::{Index, TantivyDocument, Term};

use crate::meter::{cpu, quantile, report, timed};

const BEST: usize = 200;
/// Memory of its writer, in bytes.
const WRITER: usize = 200_000_000;

/// Indexes the windows listed in `database`, from the files of `root`, and runs the same queries.
pub fn tantivy(database: &Path, root: &Path, queries: &[String], ours: f64) {
    let folder = tempfile::tempdir().expect("a folder");
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("code")
        .set_index_option(IndexRecordOption::WithFreqs);
    let mut schema = Schema::builder();
    let body = schema.add_text_field("body", TextOptions::default().set_indexing_options(indexing));
    let index = Index::create_in_dir(&folder, schema.build()).expect("an index");
    let words = || {
        TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(LowerCaser)
            .filter(Stemmer::new(Language::English))
            .build()
    };
    index.tokenizers().register("code", words());
    let mut writer = index.writer_with_num_threads::<TantivyDocument>(2, WRITER).expect("a writer");
    let before = cpu(None);
    let mut text = 0;
    for window in windows(database, root) {
        text += window.len();
        let mut document = TantivyDocument::default();
        document.add_text(body, split(&window));
        writer.add_document(document).expect("room");
    }
    writer.commit().expect("a commit");
    let spent = cpu(None) - before;
    let searcher = index.reader().expect("a reader").searcher();
    let mut analyzer = words();
    let mut times = Vec::new();
    for round in 0..2 {
        for query in queries {
            let mut terms: Vec<(Occur, Box<dyn Query>)> = Vec::new();
            let words = split(query);
            analyzer.token_stream(&words).process(&mut |token| {
                let term = Term::from_field_text(body, &token.text);
                terms.push((
                    Occur::Should,
                    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)),
                ));
            });
            let query = BooleanQuery::new(terms);
            let best = TopDocs::with_limit(BEST).order_by_score();
            let (results, ms) = timed(|| searcher.search(&query, &best).expect("an answer"));
            std::hint::black_box(results);
            if round == 1 {
                times.push(ms);
            }
        }
    }
    let p50 = quantile(&mut times, 0.5);
    let p95 = quantile(&mut times, 0.95);
    report(format!(
        "search: tantivy, its best {BEST}       p50 {p50:9.3} ms  p95 {p95:9.3} ms; built at {:.0} MB per CPU-s; our lexical p95, ranked and with lines, {:.2} x that  floor <= 3 x",
        text as f64 / 1e6 / spent,
        ours / p95
    ));
}

/// Reads the text of each window from the files.
fn windows(database: &Path, root: &Path) -> Vec<String> {
    let conn = cairn_store::open_read_only(database).expect("a database");
    let mut all = conn
        .prepare("SELECT f.path, c.byte_range_start, c.byte_range_end FROM chunk c JOIN file f ON f.id = c.file_id ORDER BY c.id")
        .expect("chunks");
    let mut rows = all.query([]).expect("chunks");
    let mut path = String::new();
    let mut bytes = Vec::new();
    let mut results = Vec::new();
    while let Some(row) = rows.next().expect("a chunk") {
        let (of, start, end): (String, usize, usize) = (
            row.get(0).expect("a path"),
            row.get(1).expect("a start"),
            row.get(2).expect("an end"),
        );
        if of != path {
            bytes = std::fs::read(root.join(&of)).expect("a file");
            path = of;
        }
        results.push(String::from_utf8_lossy(bytes.get(start..end).unwrap_or(&[])).into_owned());
    }
    results
}

/// Inserts spaces at case changes within identifiers and for `_`.
fn split(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut small = false;
    for c in text.chars() {
        if small && c.is_uppercase() {
            out.push(' ');
        }
        small = c.is_lowercase();
        out.push(if c == '_' { ' ' } else { c });
    }
    out
}
