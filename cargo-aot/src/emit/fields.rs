//! Legal Rust field names for tensors: the one place where they are made.

use crate::manifest::is_keyword;

/// A field for each tensor, all different: lower case, every run of other characters than ASCII
/// letters and digits a `_`; `t_` before what would begin with a digit or be empty, `_` after a
/// keyword, `_2`, `_3` … where a name comes again. What `tf2onnx` adds, `:0`, is left out.
pub fn field_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    for name in names {
        let base = field(name.strip_suffix(":0").unwrap_or(name));
        let mut unique = base.clone();
        let mut number = 2;
        while fields.contains(&unique) {
            unique = format!("{base}_{number}");
            number += 1;
        }
        fields.push(unique);
    }
    fields
}

fn field(name: &str) -> String {
    let mut field = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            field.push(c.to_ascii_lowercase());
        } else if !field.ends_with('_') && !field.is_empty() {
            field.push('_');
        }
    }
    let mut field = field.trim_end_matches('_').to_owned();
    if field.is_empty() || field.starts_with(|c: char| c.is_ascii_digit()) {
        field = format!("t_{field}").trim_end_matches('_').to_owned();
    }
    if is_keyword(&field) {
        field.push('_');
    }
    field
}

#[cfg(test)]
mod tests {
    use super::field_names;

    #[test]
    fn names_become_legal_and_unique() {
        let names = [
            "input_ids",
            "serving_default_input_2:0",
            "/model/out.0",
            "type",
            "3",
            "",
            "x:1",
            "x.1",
            "X_1",
            "Größe",
            "StatefulPartitionedCall:1",
        ];
        let expected = [
            "input_ids",
            "serving_default_input_2",
            "model_out_0",
            "type_",
            "t_3",
            "t",
            "x_1",
            "x_1_2",
            "x_1_3",
            "gr_e",
            "statefulpartitionedcall_1",
        ];
        assert_eq!(field_names(names), expected);
    }
}
