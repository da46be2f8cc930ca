//! Pieces of C++ text with what is known about them.

use aot_ir::DType;

/// A C++ integer expression that can stand as an operand of any operator: a name, a literal or
/// something in parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Int {
    /// The expression.
    pub text: String,
    /// `long long` (else `int`).
    pub wide: bool,
}

impl Int {
    /// An `int` expression.
    pub fn narrow(text: impl Into<String>) -> Self {
        Self { text: text.into(), wide: false }
    }

    /// A `long long` expression.
    pub fn wide(text: impl Into<String>) -> Self {
        Self { text: text.into(), wide: true }
    }

    /// The C++ type.
    pub fn type_name(&self) -> &'static str {
        if self.wide { "long long" } else { "int" }
    }

    /// The same value as `long long`.
    pub fn widened(&self) -> String {
        if self.wide { self.text.clone() } else { format!("(long long){}", self.text) }
    }
}

/// A scalar at one place, or at the places of all lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The compute type.
    pub dtype: DType,
    /// One operand-like expression if all lanes agree, else one a lane.
    pub lanes: Vec<String>,
}

impl Value {
    /// The same in all lanes.
    pub fn same(dtype: DType, text: impl Into<String>) -> Self {
        Self { dtype, lanes: vec![text.into()] }
    }

    /// The expression for one lane.
    pub fn lane(&self, lane: usize) -> &str {
        if self.lanes.len() == 1 { &self.lanes[0] } else { &self.lanes[lane] }
    }

    /// The same with an expression for each of `width` lanes.
    pub fn spread(&self, width: usize) -> Self {
        let lanes = (0..width).map(|l| self.lane(l).to_owned()).collect();
        Self { dtype: self.dtype, lanes }
    }

    /// Whether all lanes agree.
    pub fn is_same(&self) -> bool {
        self.lanes.len() == 1
    }
}
