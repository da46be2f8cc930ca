//! Size expressions as exporters write them: `8*h8`, `((s43*s53)//s72)`, `(Mod(2*t, 4)) + 1`, `Max(s17, bb)`.
//!
//! The grammar is that of sympy's printer over integers: `+ - * // % **`, parentheses, the functions
//! `Mod PythonMod FloorDiv CeilDiv CleanDiv floor ceiling Min Max` (in any case), numbers and names.
//! A plain `/` is accepted where an enclosing `floor` or `ceiling` says how to round, or where it is exact.

use super::{Dim, Scope};

/// Longest expression accepted, in bytes.
const MAX_LENGTH: usize = 4096;
/// Deepest nesting accepted.
const MAX_DEPTH: u32 = 48;
/// Largest exponent accepted.
const MAX_POWER: i64 = 8;
/// Most terms that a product may have.
const MAX_TERMS: usize = 256;

/// Why a text is no size expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseDimError {
    /// The text is too long or nested too deeply.
    #[error("size expression is too long or nested too deeply")]
    TooComplex,
    /// Something unexpected at a byte offset.
    #[error("size expression `{text}` is not understood at byte {at}")]
    Syntax {
        /// The text.
        text: String,
        /// Where.
        at: usize,
    },
    /// A name that has no value.
    #[error("size expression names `{0}`, which has no size")]
    UnknownName(String),
    /// A division by something that may be zero or negative, or that is not exact.
    #[error("size expression `{0}` divides by something that may not be positive, or not exactly")]
    Division(String),
}

/// The names in a size expression, each once, in order of appearance.
///
/// # Errors
/// When the text is no size expression.
pub fn names(text: &str) -> Result<Vec<String>, ParseDimError> {
    let mut found: Vec<String> = Vec::new();
    let symbols = super::Symbols::default();
    let any_positive = &mut |name: &str| {
        if !found.iter().any(|n| n == name) {
            found.push(name.to_owned());
        }
        Some(Dim::ONE)
    };
    // With every name 1 a divisor may seem to be zero; the names are all that is asked for.
    let scope = Scope::new(&symbols);
    let mut parser = Parser::new(text, &scope, any_positive)?;
    parser.lenient = true;
    parser.all()?;
    Ok(found)
}

impl Dim {
    /// Reads a size expression; `resolve` gives the value of a name.
    ///
    /// # Errors
    /// When the text is no size expression, or has a name without value, or divides by what is not
    /// proved positive by `scope`.
    pub fn parse(
        text: &str,
        scope: &Scope<'_>,
        resolve: &mut dyn FnMut(&str) -> Option<Dim>,
    ) -> Result<Dim, ParseDimError> {
        Parser::new(text, scope, resolve)?.all()
    }
}

/// A quotient; the divisor is 1 except below `floor` and `ceiling`.
struct Ratio {
    over: Dim,
    under: Dim,
}

impl From<Dim> for Ratio {
    fn from(over: Dim) -> Self {
        Self { over, under: Dim::ONE }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    scope: &'a Scope<'a>,
    resolve: &'a mut dyn FnMut(&str) -> Option<Dim>,
    lenient: bool,
}

impl<'a> Parser<'a> {
    fn new(
        text: &'a str,
        scope: &'a Scope<'a>,
        resolve: &'a mut dyn FnMut(&str) -> Option<Dim>,
    ) -> Result<Self, ParseDimError> {
        if text.len() > MAX_LENGTH {
            return Err(ParseDimError::TooComplex);
        }
        Ok(Self { text, at: 0, depth: 0, scope, resolve, lenient: false })
    }

    fn all(mut self) -> Result<Dim, ParseDimError> {
        let ratio = self.sum()?;
        self.space();
        if self.at < self.text.len() {
            return Err(self.syntax());
        }
        self.whole(ratio)
    }

    /// `sum = product (("+" | "-") product)*`
    fn sum(&mut self) -> Result<Ratio, ParseDimError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ParseDimError::TooComplex);
        }
        let mut total = self.product()?;
        loop {
            let negative = match self.peek() {
                Some(b'+') => false,
                Some(b'-') => true,
                _ => break,
            };
            self.at += 1;
            let next = self.product()?;
            let right = if negative { -&next.over } else { next.over };
            total = if total.under == next.under {
                Ratio { over: total.over + right, under: total.under }
            } else {
                Ratio {
                    over: self.times(&total.over, &next.under)?
                        + self.times(&right, &total.under)?,
                    under: self.times(&total.under, &next.under)?,
                }
            };
        }
        self.depth -= 1;
        Ok(total)
    }

    /// `product = power (("*" | "/" | "//" | "%") power)*`
    fn product(&mut self) -> Result<Ratio, ParseDimError> {
        let mut total = self.power()?;
        loop {
            if self.eat("//") {
                let (a, b) = (self.whole(total)?, self.power()?);
                let b = self.divisor(b)?;
                total = self.scope.floor_div(&a, &b).into();
            } else if self.eat("%") {
                let (a, b) = (self.whole(total)?, self.power()?);
                let b = self.divisor(b)?;
                total = self.scope.modulo(&a, &b).into();
            } else if self.eat("/") {
                let next = self.power()?;
                let b = self.divisor(next)?;
                total = Ratio { under: self.times(&total.under, &b)?, over: total.over };
            } else if self.eat("*") {
                let next = self.power()?;
                total = Ratio {
                    over: self.times(&total.over, &next.over)?,
                    under: self.times(&total.under, &next.under)?,
                };
            } else {
                return Ok(total);
            }
        }
    }

    /// `power = unary ("**" number)?`
    fn power(&mut self) -> Result<Ratio, ParseDimError> {
        let base = self.unary()?;
        if !self.eat("**") {
            return Ok(base);
        }
        let start = self.at;
        let exponent = self.unary()?;
        let exponent = self.whole(exponent)?;
        match exponent.as_const() {
            Some(n) if (0..=MAX_POWER).contains(&n) => {
                let base = self.whole(base)?;
                let mut out = Dim::ONE;
                for _ in 0..n {
                    out = self.times(&out, &base)?;
                }
                Ok(out.into())
            }
            _ => Err(ParseDimError::Syntax { text: self.text.to_owned(), at: start }),
        }
    }

    /// `unary = ("-" | "+") unary | number | name | name "(" sum ("," sum)* ")" | "(" sum ")"`
    fn unary(&mut self) -> Result<Ratio, ParseDimError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ParseDimError::TooComplex);
        }
        let out = match self.peek() {
            Some(b'-') => {
                self.at += 1;
                let inner = self.power()?;
                Ratio { over: -&inner.over, under: inner.under }
            }
            Some(b'+') => {
                self.at += 1;
                self.power()?
            }
            Some(b'(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.expect(")")?;
                inner
            }
            Some(c) if c.is_ascii_digit() => {
                let digits = self.take(|c| c.is_ascii_digit());
                let n: i64 = digits.parse().map_err(|_| self.syntax())?;
                Dim::from(n).into()
            }
            Some(c) if is_name(c) => {
                let name = self.take(|c| is_name(c) || c.is_ascii_digit() || c == b'.');
                if self.peek() == Some(b'(') {
                    self.at += 1;
                    self.call(name)?
                } else {
                    (self.resolve)(name)
                        .ok_or_else(|| ParseDimError::UnknownName(name.to_owned()))?
                        .into()
                }
            }
            _ => return Err(self.syntax()),
        };
        self.depth -= 1;
        Ok(out)
    }

    fn call(&mut self, name: &str) -> Result<Ratio, ParseDimError> {
        let mut operands = vec![self.sum()?];
        while self.eat(",") {
            operands.push(self.sum()?);
        }
        self.expect(")")?;
        let lower = name.to_ascii_lowercase();
        if operands.len() == 1 {
            let ratio = operands.remove(0);
            let Ratio { over, under } = &ratio;
            return match lower.as_str() {
                "floor" | "trunctoint" => Ok(self.scope.floor_div(over, under).into()),
                "ceiling" | "ceil" | "ceiltoint" => Ok(self.scope.ceil_div(over, under).into()),
                "int" | "identity" | "min" | "max" => Ok(self.whole(ratio)?.into()),
                _ => Err(self.syntax()),
            };
        }
        let mut operands = operands.into_iter();
        let first = operands.next().ok_or_else(|| self.syntax())?;
        let mut total = self.whole(first)?;
        let count = operands.len();
        for operand in operands {
            total = match lower.as_str() {
                "min" => self.scope.min(&total, &self.whole(operand)?),
                "max" => self.scope.max(&total, &self.whole(operand)?),
                "mod" | "pythonmod" if count == 1 => {
                    self.scope.modulo(&total, &self.divisor(operand)?)
                }
                "floordiv" | "cleandiv" if count == 1 => {
                    self.scope.floor_div(&total, &self.divisor(operand)?)
                }
                "ceildiv" if count == 1 => self.scope.ceil_div(&total, &self.divisor(operand)?),
                _ => return Err(self.syntax()),
            };
        }
        Ok(total.into())
    }

    fn times(&self, a: &Dim, b: &Dim) -> Result<Dim, ParseDimError> {
        let terms = (a.terms().len() + 1).saturating_mul(b.terms().len() + 1);
        if terms > MAX_TERMS {
            return Err(ParseDimError::TooComplex);
        }
        Ok(a * b)
    }

    fn whole(&self, ratio: Ratio) -> Result<Dim, ParseDimError> {
        if ratio.under.is(1) {
            return Ok(ratio.over);
        }
        if !self.lenient && !self.scope.modulo(&ratio.over, &ratio.under).is(0) {
            return Err(ParseDimError::Division(self.text.to_owned()));
        }
        Ok(self.scope.floor_div(&ratio.over, &ratio.under))
    }

    fn divisor(&self, ratio: Ratio) -> Result<Dim, ParseDimError> {
        let divisor = self.whole(ratio)?;
        if self.scope.proves_nonneg(&(&divisor - 1)) {
            Ok(divisor)
        } else if self.lenient {
            Ok(Dim::ONE)
        } else {
            Err(ParseDimError::Division(self.text.to_owned()))
        }
    }

    fn space(&mut self) {
        self.take(|c| c.is_ascii_whitespace());
    }

    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes an operator; `*` and `/` are not taken where `**` and `//` stand.
    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let rest = &self.text.as_bytes()[self.at..];
        let token = token.as_bytes();
        let doubled = token.len() == 1
            && matches!(token[0], b'*' | b'/')
            && rest.get(1).is_some_and(|c| *c == token[0]);
        let found = rest.starts_with(token) && !doubled;
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), ParseDimError> {
        if self.eat(token) { Ok(()) } else { Err(self.syntax()) }
    }

    fn take(&mut self, f: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.text.as_bytes().get(self.at).is_some_and(|c| f(*c)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn syntax(&self) -> ParseDimError {
        ParseDimError::Syntax { text: self.text.to_owned(), at: self.at }
    }
}

fn is_name(c: u8) -> bool {
    c.is_ascii_alphabetic() || c == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::{Symbol, Symbols};

    fn parse(text: &str) -> Result<Dim, ParseDimError> {
        let mut symbols = Symbols::default();
        let a = symbols.add(Symbol::new("a", 1, 64, 1));
        let b = symbols.add(Symbol::new("b.0", 8, 512, 8));
        let (a, b) = (symbols.dim(a), symbols.dim(b));
        Dim::parse(text, &Scope::new(&symbols), &mut |name| match name {
            "a" => Some(a.clone()),
            "b.0" => Some(b.clone()),
            _ => None,
        })
    }

    /// The value at a = 5, b.0 = 24 (its atom is 3).
    fn value(text: &str) -> i64 {
        parse(text).map(|d| d.eval::<[i64]>(&[5, 3]).expect(text)).expect(text)
    }

    #[test]
    fn exporters_expressions_have_their_values() {
        assert_eq!(value("8*a"), 40);
        assert_eq!(value("((a*b.0)//a)"), 24);
        assert_eq!(value("(Mod(2*a, 4)) + 1"), 3);
        assert_eq!(value("Max(a, b.0, 7)"), 24);
        assert_eq!(value("-a + 2*(b.0 - 1) % 7"), -1);
        assert_eq!(value("floor(a/2) + ceiling(a/2)"), 5);
        assert_eq!(value("b.0/8 + a**2"), 28);
        assert_eq!(value("FloorDiv(b.0 - 1, a)"), 4);
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        assert!(matches!(parse("a b"), Err(ParseDimError::Syntax { at: 2, .. })));
        assert!(matches!(parse(""), Err(ParseDimError::Syntax { .. })));
        assert!(matches!(parse("f(a)"), Err(ParseDimError::Syntax { .. })));
        assert_eq!(parse("2*c"), Err(ParseDimError::UnknownName("c".into())));
        assert!(matches!(parse("a/2"), Err(ParseDimError::Division(_))));
        assert!(matches!(parse("a//(a - 1)"), Err(ParseDimError::Division(_))));
        assert_eq!(parse(&"(".repeat(3000)), Err(ParseDimError::TooComplex));
        assert_eq!(parse(&"-".repeat(3000)), Err(ParseDimError::TooComplex));
        assert!(parse("99999999999999999999").is_err());
    }

    #[test]
    fn names_are_listed_once() {
        assert_eq!(names("Max(s17, bb) + s17//(bb - 1)").unwrap(), ["s17", "bb"]);
        assert!(names("batch size").is_err());
    }
}
