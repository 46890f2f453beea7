//! The JSON that a value of TOML stands for.

use toml::de::DeValue;

use super::Entry;
use crate::json::Json;

impl Entry<'_> {
    /// The value as JSON. `None` for one that TOML has and JSON has not.
    #[must_use]
    pub fn json(&self) -> Option<Json> {
        json_of(self.value).and_then(|text| Json::of_any_depth(text.as_bytes(), usize::MAX).ok())
    }
}

/// A value of TOML as JSON, numbers digit for digit. `None` for one that JSON has not, or that is beyond the numbers of most
/// programs.
fn json_of(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => Json::of(text).text().to_owned(),
        DeValue::Integer(number) => {
            let number = i128::from_str_radix(number.as_str(), number.radix()).ok();
            number.filter(|number| (i64::MIN.into()..=u64::MAX.into()).contains(number))?.to_string()
        }
        DeValue::Float(number) => {
            number.as_str().parse::<f64>().ok().filter(|number| number.is_finite())?;
            number.as_str().trim_start_matches('+').to_owned()
        }
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => return None,
        DeValue::Array(elements) => {
            let elements = elements.iter().map(|element| json_of(element.get_ref()));
            format!("[{}]", elements.collect::<Option<Vec<_>>>()?.join(","))
        }
        DeValue::Table(members) => {
            let json = |name: &str| Json::of(&name).text().to_owned();
            let members =
                members.iter().map(|(name, value)| Some(json(name.get_ref()) + ":" + &json_of(value.get_ref())?));
            format!("{{{}}}", members.collect::<Option<Vec<_>>>()?.join(","))
        }
    })
}
