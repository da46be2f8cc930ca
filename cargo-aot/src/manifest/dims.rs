//! `dims` and `inputs` of a model.

use toml::Spanned;
use toml::de::DeValue;

use super::diagnostic::{Diagnostic, Span};
use super::reader::{Reader, Table};
use super::schema::{DimKind, DimSpec, InputDim, InputSpec};

/// Reads a table of dims.
pub(super) fn read_dims(reader: &mut Reader, table: &Table<'_>) -> Vec<DimSpec> {
    let mut dims = Vec::new();
    for entry in table.entries() {
        let path = format!("{}.{}", table.path, entry.key.get_ref());
        if let Some(kind) = read_dim(reader, &path, entry.value) {
            let name = Spanned::new(entry.key.span(), (*entry.key.get_ref()).to_owned());
            dims.push(DimSpec { name, span: entry.value.span(), kind });
        }
    }
    dims
}

/// Reads a table of input shapes.
pub(super) fn read_inputs(reader: &mut Reader, table: &Table<'_>) -> Vec<InputSpec> {
    let mut inputs = Vec::new();
    for entry in table.entries() {
        let path = format!("{}.{}", table.path, entry.key.get_ref());
        let Some(values) = reader.array(&path, entry.value) else { continue };
        let mut dims = Vec::new();
        for value in values {
            let dim = match value.get_ref() {
                DeValue::Integer(_) => size(reader, &path, value).map(InputDim::Fixed),
                DeValue::String(_) => {
                    reader.string(&path, value).map(|name| InputDim::Name(name.into_inner().into()))
                }
                _ => reader.wrong_type(&path, "the name of a dim or its size", value),
            };
            dims.extend(dim.map(|dim| Spanned::new(value.span(), dim)));
        }
        let name = Spanned::new(entry.key.span(), (*entry.key.get_ref()).to_owned());
        inputs.push(InputSpec { name, span: entry.value.span(), dims });
    }
    inputs
}

fn read_dim(reader: &mut Reader, path: &str, value: &Spanned<DeValue<'_>>) -> Option<DimKind> {
    match value.get_ref() {
        DeValue::Integer(_) => size(reader, path, value).map(DimKind::Fixed),
        DeValue::String(_) => {
            let (lo, hi) = range(reader, path, value)?;
            Some(DimKind::Range { lo, hi, step: 1, buckets: vec![hi] })
        }
        DeValue::Table(_) => {
            let table = reader.table(path, value)?;
            reader.known_keys(&table, &["range", "step", "buckets"]);
            stepped(reader, &table)
        }
        _ => reader.wrong_type(
            path,
            "a range such as \"1..=64\", a size, or a table with `range`",
            value,
        ),
    }
}

/// `{ range = "32..=960", step = 32, buckets = [320, 960] }`
fn stepped(reader: &mut Reader, table: &Table<'_>) -> Option<DimKind> {
    let path = &table.path;
    let bounds = match table.get("range") {
        Some(value) => range(reader, &format!("{path}.range"), value).map(|r| (r, value.span())),
        None => {
            reader.push(
                Diagnostic::error(format!("`{path}` has no `range`"))
                    .at(table.span.clone(), "expected `range = \"LOW..=HIGH\"` in here"),
            );
            None
        }
    };
    let step = match table.get("step") {
        Some(value) => match size(reader, &format!("{path}.step"), value)? {
            0 => {
                reader.push(
                    Diagnostic::error(format!("`{path}.step` is 0"))
                        .at(value.span(), "a step is at least 1"),
                );
                return None;
            }
            step => (step, value.span()),
        },
        None => (1, table.span.clone()),
    };
    let given = match table.get("buckets") {
        Some(value) => Some(bucket_sizes(reader, &format!("{path}.buckets"), value)?),
        None => None,
    };
    let ((lo, hi), range_span) = bounds?;
    let fits = check_step(reader, (lo, hi), &range_span, &step);
    let in_order = check_buckets(reader, (lo, hi), &range_span, &step, given.as_deref());
    if !fits || !in_order {
        return None;
    }
    let mut buckets: Vec<u64> =
        given.unwrap_or_default().into_iter().map(Spanned::into_inner).collect();
    if buckets.last() != Some(&hi) {
        buckets.push(hi);
    }
    Some(DimKind::Range { lo, hi, step: step.0, buckets })
}

fn check_step(
    reader: &mut Reader,
    (lo, hi): (u64, u64),
    range_span: &Span,
    (step, step_span): &(u64, Span),
) -> bool {
    let mut fits = true;
    for (what, bound) in [("smallest", lo), ("largest", hi)] {
        if bound % step != 0 {
            fits = false;
            let below = bound / step * step;
            let near = match below {
                below if below < lo => format!("{}", below + step),
                below if what == "largest" => format!("{below}"),
                below => format!("{below} or {}", below + step),
            };
            reader.push(
                Diagnostic::error(format!("the step {step} doesn't fit the range {lo}..={hi}"))
                    .at(step_span.clone(), format!("the {what} size {bound} is no multiple of it"))
                    .at(range_span.clone(), "the range")
                    .help(format!("all sizes are multiples of the step: try {near}")),
            );
        }
    }
    fits
}

fn check_buckets(
    reader: &mut Reader,
    (lo, hi): (u64, u64),
    range_span: &Span,
    (step, _): &(u64, Span),
    buckets: Option<&[Spanned<u64>]>,
) -> bool {
    let before = reader.diagnostics.len();
    let mut previous: Option<&Spanned<u64>> = None;
    for bucket in buckets.unwrap_or_default() {
        let size = *bucket.get_ref();
        if !(lo..=hi).contains(&size) {
            reader.push(
                Diagnostic::error(format!("bucket {size} lies outside the range {lo}..={hi}"))
                    .at(bucket.span(), "no size in the range needs it")
                    .at(range_span.clone(), "the range"),
            );
        } else if !size.is_multiple_of(*step) {
            reader.push(
                Diagnostic::error(format!("bucket {size} is no multiple of the step {step}"))
                    .at(bucket.span(), "no input has this size"),
            );
        }
        if let Some(previous) = previous
            && size <= *previous.get_ref()
        {
            reader.push(
                Diagnostic::error("buckets don't increase")
                    .at(bucket.span(), format!("{size} comes after {}", previous.get_ref()))
                    .help("list buckets from the smallest to the largest, each once"),
            );
        }
        previous = Some(bucket);
    }
    reader.diagnostics.len() == before
}

fn bucket_sizes(
    reader: &mut Reader,
    path: &str,
    value: &Spanned<DeValue<'_>>,
) -> Option<Vec<Spanned<u64>>> {
    let values = reader.array(path, value)?;
    if values.is_empty() {
        reader.push(
            Diagnostic::error(format!("`{path}` is empty"))
                .at(value.span(), "expected at least one size")
                .help("leave `buckets` out to have one bucket of the largest size"),
        );
        return None;
    }
    let count = values.len();
    let sizes: Vec<_> = values
        .into_iter()
        .filter_map(|v| size(reader, path, v).map(|size| Spanned::new(v.span(), size)))
        .collect();
    (sizes.len() == count).then_some(sizes)
}

/// A size that kernels can count.
fn size(reader: &mut Reader, path: &str, value: &Spanned<DeValue<'_>>) -> Option<u64> {
    let DeValue::Integer(integer) = value.get_ref() else {
        return reader.wrong_type(path, "an integer", value);
    };
    match i128::from_str_radix(integer.as_str(), integer.radix()) {
        Ok(size) if (0..=i128::from(DimSpec::LARGEST)).contains(&size) => u64::try_from(size).ok(),
        _ => {
            reader.push(too_large(path, &integer.to_string()).at(value.span(), ""));
            None
        }
    }
}

fn too_large(path: &str, found: &str) -> Diagnostic {
    Diagnostic::error(format!("`{path}`: {found} is no possible size"))
        .help(format!("sizes lie in 0..={}", DimSpec::LARGEST))
}

/// `"LOW..=HIGH"`
fn range(reader: &mut Reader, path: &str, value: &Spanned<DeValue<'_>>) -> Option<(u64, u64)> {
    let text = reader.string(path, value)?;
    let text = *text.get_ref();
    let form =
        |label: String| Diagnostic::error(format!("`{path}` is no range")).at(value.span(), label);
    let Some((lo, hi)) = text.split_once("..=") else {
        let diagnostic = form("expected the form \"LOW..=HIGH\"".to_owned());
        let halves = text.split_once("..").map(|(lo, hi)| (lo.trim(), hi.trim()));
        reader.push(match halves.map(|(lo, hi)| (lo.parse::<u64>(), hi.parse::<u64>())) {
            Some((Ok(lo), Ok(hi))) => diagnostic.help(format!(
                "ranges include both ends: write \"{lo}..={}\" or \"{lo}..={hi}\"",
                hi.saturating_sub(1),
            )),
            Some((Ok(_), Err(_))) => {
                diagnostic.help("a range needs a largest size, for memory is planned for it")
            }
            _ => diagnostic,
        });
        return None;
    };
    let mut bound = |which: &str, text: &str| match text.trim().parse::<u64>() {
        Ok(size) if size <= DimSpec::LARGEST => Some(size),
        Ok(size) => {
            reader.push(too_large(path, &size.to_string()).at(value.span(), ""));
            None
        }
        Err(_) => {
            reader.push(form(format!("the {which} size `{}` is no number", text.trim())));
            None
        }
    };
    let (lo, hi) = (bound("smallest", lo), bound("largest", hi));
    let (lo, hi) = (lo?, hi?);
    if lo > hi {
        reader.push(
            Diagnostic::error(format!("`{path}` is an empty range"))
                .at(value.span(), format!("{lo} is larger than {hi}"))
                .help(format!("did you mean \"{hi}..={lo}\"?")),
        );
        return None;
    }
    if hi == 0 {
        reader.push(
            Diagnostic::error(format!("`{path}` allows no size but 0"))
                .at(value.span(), "nothing would ever be computed"),
        );
        return None;
    }
    Some((lo, hi))
}
