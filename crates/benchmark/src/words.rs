//! Words of a command line inside an option or a file.

/// Words between blanks; quotes hold words with blanks together. `None` when a quote has no end.
pub fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t' | '\n') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word.take());
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_together() {
        let words = split("a 'b c'  --save \"\" d'e'").expect("whole quotes");
        assert_eq!(words, ["a", "b c", "--save", "", "de"]);
        assert_eq!(split("a 'b"), None);
    }
}
