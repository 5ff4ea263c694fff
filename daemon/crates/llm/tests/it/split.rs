//! Chunks do not depend on the splitting of an answer's bytes, and decoding terminates for any
//! bytes.

use cairn_llm::{Chunk, Decoder, Format, Limits, LlmError, ModelRequest};
use proptest::prelude::*;

use crate::{fixture, shapes::SHAPES};

/// Decodes chunks and joins consecutive texts, because the visible result is the same.
fn decode(format: Format, pieces: &[&[u8]]) -> (Vec<Chunk>, Option<LlmError>) {
    let mut decoder = Decoder::new(format, "it", &ModelRequest::default(), Limits::default());
    let fed = pieces.iter().try_for_each(|piece| decoder.feed(piece));
    let error = fed.and_then(|()| decoder.end()).err();
    (std::iter::from_fn(|| decoder.next()).collect(), error)
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let (mut pieces, mut from) = (Vec::new(), 0);
    for cut in cuts {
        pieces.push(&bytes[from..cut]);
        from = cut;
    }
    pieces.push(&bytes[from..]);
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn decoding_does_not_depend_on_splits(
        shape in 0..SHAPES.len(),
        cuts in prop::collection::vec(any::<usize>(), 0..40),
        returns in any::<bool>(),
    ) {
        let (provider, name, _) = SHAPES[shape];
        let format = Format::of(provider).unwrap();
        let mut bytes = fixture(name);
        if returns {
            bytes = String::from_utf8(bytes).unwrap().replace('\n', "\r\n").into_bytes();
        }
        prop_assert_eq!(decode(format, &[&bytes]), decode(format, &pieces(&bytes, &cuts)));
    }

    #[test]
    fn damaged_answers_have_an_outcome(
        shape in 0..SHAPES.len(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..20),
        cuts in prop::collection::vec(any::<usize>(), 0..10),
    ) {
        let (provider, name, _) = SHAPES[shape];
        let format = Format::of(provider).unwrap();
        let mut bytes = fixture(name);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let (chunks, error) = decode(format, &[&bytes]);
        prop_assert_eq!(&(chunks.clone(), error.clone()), &decode(format, &pieces(&bytes, &cuts)));
        let ends = chunks.iter().filter(|chunk| matches!(chunk, Chunk::Finish(_))).count();
        prop_assert_eq!(ends, usize::from(error.is_none()));
    }

    #[test]
    fn random_bytes_have_an_outcome(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        for format in [Format::OpenAi, Format::Anthropic, Format::Ollama, Format::Scripted] {
            prop_assert!(decode(format, &[&bytes]).1.is_some());
        }
    }
}

#[test]
fn every_format_decodes_byte_by_byte() {
    for (provider, name, _) in SHAPES {
        let bytes = fixture(name);
        let singles: Vec<&[u8]> = bytes.chunks(1).collect();
        let format = Format::of(provider).unwrap();
        assert_eq!(decode(format, &[&bytes]), decode(format, &singles), "{name}");
    }
}
