//! The tokenizer of uncased BERT models: text → token ids of a vocabulary.
//!
//! Text is cleaned and lower-cased, accents are dropped, words are parted at spaces, punctuation and
//! ideographs, and each word becomes the longest pieces that the vocabulary has, from the left.
//! Unlike tokenizers that look for them in the text, `[CLS]` and its like in the text are plain
//! characters here.

use std::collections::HashMap;

use unicode_general_category::{GeneralCategory as Category, get_general_category};
use unicode_normalization::UnicodeNormalization;

/// A word of more characters than this is unknown as a whole.
const MAX_WORD: usize = 100;

/// Why a vocabulary cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct MissingToken(&'static str);

impl std::fmt::Display for MissingToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the vocabulary has no {}: is it one of an uncased BERT model?", self.0)
    }
}

impl std::error::Error for MissingToken {}

/// A vocabulary.
#[derive(Debug)]
pub struct WordPiece {
    ids: HashMap<String, i64>,
    unknown: i64,
    start: i64,
    end: i64,
}

impl WordPiece {
    /// Reads a vocabulary: one token a line, its id the number of the line from 0.
    pub fn from_vocabulary(text: &str) -> Result<Self, MissingToken> {
        let ids: HashMap<String, i64> =
            (0..).zip(text.lines()).map(|(id, token)| (token.to_owned(), id)).collect();
        let special = |token| ids.get(token).copied().ok_or(MissingToken(token));
        let (unknown, start, end) = (special("[UNK]")?, special("[CLS]")?, special("[SEP]")?);
        Ok(Self { ids, unknown, start, end })
    }

    /// The ids of `text` between the marks of a sequence's start and end, `limit` ids at most
    /// (2 or more): what is longer loses its tail.
    pub fn encode(&self, text: &str, limit: usize) -> Vec<i64> {
        let mut ids = vec![self.start];
        let text = normalise(text);
        for word in text.split(' ').flat_map(split_marks).filter(|word| !word.is_empty()) {
            self.pieces(word, &mut ids);
        }
        ids.truncate(limit.max(2) - 1);
        ids.push(self.end);
        ids
    }

    fn pieces(&self, word: &str, ids: &mut Vec<i64>) {
        if word.chars().count() > MAX_WORD {
            ids.push(self.unknown);
            return;
        }
        let before = ids.len();
        let mut from = 0;
        let mut key = String::new();
        while from < word.len() {
            let ends = word[from..].char_indices().map(|(at, c)| from + at + c.len_utf8());
            let piece = ends.rev().find_map(|to| {
                key.clear();
                key.push_str(if from == 0 { "" } else { "##" });
                key.push_str(&word[from..to]);
                self.ids.get(&key).map(|&id| (id, to))
            });
            match piece {
                Some((id, to)) => {
                    ids.push(id);
                    from = to;
                }
                None => {
                    ids.truncate(before);
                    ids.push(self.unknown);
                    return;
                }
            }
        }
    }
}

/// Lower case without accents and control characters; ideographs stand between spaces, and every
/// space is U+0020.
fn normalise(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            cleaned.push(' ');
        } else if c == '\u{fffd}' || is_control(c) {
        } else if is_ideograph(c) {
            cleaned.extend([' ', c, ' ']);
        } else {
            cleaned.push(c);
        }
    }
    cleaned
        .nfd()
        .filter(|&c| get_general_category(c) != Category::NonspacingMark)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Parts a word so that each punctuation mark stands alone.
fn split_marks(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = if is_mark(first) {
            first.len_utf8()
        } else {
            rest.find(is_mark).unwrap_or(rest.len())
        };
        let (part, tail) = rest.split_at(end);
        rest = tail;
        Some(part)
    })
}

fn is_control(c: char) -> bool {
    use Category::{Control, Format, PrivateUse, Surrogate, Unassigned};
    matches!(get_general_category(c), Control | Format | PrivateUse | Surrogate | Unassigned)
}

fn is_mark(c: char) -> bool {
    use Category as C;
    c.is_ascii_punctuation()
        || matches!(
            get_general_category(c),
            C::ConnectorPunctuation
                | C::DashPunctuation
                | C::OpenPunctuation
                | C::ClosePunctuation
                | C::InitialPunctuation
                | C::FinalPunctuation
                | C::OtherPunctuation
        )
}

/// Whether a character belongs to a block of CJK ideographs, whose characters are words of their own.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF
        | 0x3400..=0x4DBF
        | 0x20000..=0x2A6DF
        | 0x2A700..=0x2B73F
        | 0x2B740..=0x2B81F
        | 0x2B820..=0x2CEAF
        | 0xF900..=0xFAFF
        | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokenizer() -> WordPiece {
        let vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\nable\n,\n中\nete\n";
        WordPiece::from_vocabulary(vocabulary).unwrap()
    }

    #[test]
    fn the_longest_piece_from_the_left_wins() {
        assert_eq!(tokenizer().encode("unaffable, able", 99), [2, 4, 5, 6, 8, 7, 3]);
    }

    #[test]
    fn a_word_without_pieces_is_unknown_as_a_whole() {
        assert_eq!(tokenizer().encode("unx able", 99), [2, 1, 7, 3]);
        assert_eq!(tokenizer().encode(&"un".repeat(60), 99), [2, 1, 3]);
    }

    #[test]
    fn case_accents_controls_and_ideographs() {
        assert_eq!(tokenizer().encode("\u{7}ÉTÉ\u{a0}中中", 99), [2, 10, 9, 9, 3]);
    }

    #[test]
    fn what_is_too_long_loses_its_tail_but_not_the_mark_of_its_end() {
        assert_eq!(tokenizer().encode("able able able", 3), [2, 7, 3]);
        assert_eq!(tokenizer().encode("able", 0), [2, 3]);
    }

    #[test]
    fn a_vocabulary_of_another_kind_is_refused() {
        assert_eq!(WordPiece::from_vocabulary("a\nb\n").unwrap_err(), MissingToken("[UNK]"));
    }

    /// Against the token ids that `cargo xtask reference` wrote, made by the tokenizers library.
    #[test]
    fn equals_the_library_the_model_was_trained_with() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets");
        let read = |path: &str| {
            let path = format!("{root}/{path}");
            std::fs::read_to_string(&path)
                .unwrap_or_else(|e| panic!("{path}: {e}: run `cargo xtask reference`"))
        };
        let tokenizer = WordPiece::from_vocabulary(&read("models/minilm/vocab.txt")).unwrap();
        let cases = read("reference/tokens.tsv");
        assert!(cases.lines().count() > 10);
        for line in cases.lines() {
            let (ids, text) = line.split_once('\t').unwrap();
            let ids: Vec<i64> = ids.split(' ').map(|id| id.parse().unwrap()).collect();
            let text = text.replace("\\n", "\n").replace("\\t", "\t");
            assert_eq!(tokenizer.encode(&text, usize::MAX), ids, "{text:?}");
        }
    }
}
