//! Writes a description as `rehearsal.toml`: what is not as usual. It is read back equal.

use std::collections::BTreeMap;
use std::fmt;

use domain::json::Json;
use domain::keys::time_text;
use serde_json::value::RawValue;

use super::{Description, SHARE_MAX, Service};

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (agent, service)) in self.services.iter().enumerate() {
            writeln!(f, "{}[services.{}]", if position > 0 { "\n" } else { "" }, name(agent))?;
            service.lines().iter().try_for_each(|(key, value)| writeln!(f, "{key} = {value}"))?;
        }
        Ok(())
    }
}

impl Service {
    /// The keys whose values are not the usual ones.
    fn lines(&self) -> Vec<(String, String)> {
        let (mine, usual) = (self.values(), Self::default().values());
        let differs = |(mine, usual): &(_, _)| mine != usual;
        let lines = mine.into_iter().zip(usual).filter(differs).filter_map(|((key, value), _)| {
            // A number and a time that are absent are written nowhere.
            Some((key.to_owned(), value?))
        });
        let answers = self.answers.iter().filter_map(|(operation, body)| {
            Some((format!("answers.{}", name(operation)), toml(serde_json::from_str(body.text()).ok()?)?))
        });
        lines.chain(answers).collect()
    }

    /// The value of each key but `answers`.
    fn values(&self) -> Vec<(&'static str, Option<String>)> {
        let time = |ms| Some(text(&time_text(ms)));
        let number = |number: u32| Some(number.to_string());
        let [p50, p99, max] = self.latency_ms.map(time);
        let (rejects, outage, later) = (&self.rejects, &self.outage, &self.later);
        vec![
            ("latency.p50", p50),
            ("latency.p99", p99),
            ("latency.max", max),
            ("effect_after_caller_left", time(self.effect_after_caller_left_ms)),
            ("busy", number(self.busy.into())),
            ("rejects.share", share(rejects.share)),
            ("rejects.status", number(rejects.status.into())),
            ("rejects.code", Some(text(&rejects.code))),
            ("outage.every", time(outage.every_ms)),
            ("outage.lasts", time(outage.lasts_ms)),
            ("outage.answers", number(outage.answers.into())),
            ("forgets_keys_after", self.forgets_keys_after_ms.and_then(time)),
            ("refuses_forward_after_undo", Some(self.refuses_forward_after_undo.to_string())),
            ("undo_of_nothing", number(self.undo_of_nothing.into())),
            ("later.share", share(later.share)),
            ("later.within", time(later.within_ms)),
            ("later.lost", share(later.lost)),
            ("later.twice", share(later.twice)),
            ("limit", self.limit.and_then(number)),
        ]
    }
}

/// A body as `answers` can hold it: TOML has no null, and no number beyond those of most programs.
#[must_use]
pub(super) fn sample(body: &Json) -> Option<Json> {
    let text = format!("[services.a]\nanswers.a = {}", toml(serde_json::from_str(body.text()).ok()?)?);
    Description::parse(&text).ok()?.services.remove("a")?.answers.remove("a")
}

/// A value of JSON in TOML, numbers digit for digit. `None` for null.
fn toml(value: &RawValue) -> Option<String> {
    let json = value.get();
    Some(match json.as_bytes().first()? {
        b'n' => return None,
        b'"' => text(&serde_json::from_str::<String>(json).ok()?),
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            format!("[{}]", elements.into_iter().filter_map(toml).collect::<Vec<_>>().join(", "))
        }
        b'{' => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
            let member = |(name, value): (String, _)| Some(format!("{} = {}", self::name(&name), toml(value)?));
            format!("{{ {} }}", members.into_iter().filter_map(member).collect::<Vec<_>>().join(", "))
        }
        b't' | b'f' => json.to_owned(),
        _ => {
            let is_whole = json.parse::<i64>().is_ok() || json.parse::<u64>().is_ok();
            let is_number = is_whole || json.contains('.') && json.parse().is_ok_and(f64::is_finite);
            if is_number { json.to_owned() } else { text(json) }
        }
    })
}

/// The name of a key, in quotes where it needs them.
fn name(name: &str) -> String {
    let is_bare = |sign: char| sign.is_ascii_alphanumeric() || sign == '-' || sign == '_';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { text(name) }
}

/// A text in quotes. TOML also wants DEL escaped.
fn text(text: &str) -> String {
    Json::of(&text).text().replace('\u{7f}', "\\u007f")
}

fn share(millionths: u32) -> Option<String> {
    debug_assert!(millionths <= SHARE_MAX);
    let (whole, part) = (millionths / 10_000, millionths % 10_000);
    let share = if part == 0 { whole.to_string() } else { format!("{whole}.{part:04}") };
    Some(text(&format!("{share}%")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes(), 1_000).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back_equal() {
        let mut service = Service {
            latency_ms: [12, 1_500, 86_400_000],
            effect_after_caller_left_ms: 90_061_001,
            busy: 425,
            forgets_keys_after_ms: Some(1),
            refuses_forward_after_undo: false,
            undo_of_nothing: 404,
            limit: Some(20),
            ..Service::default()
        };
        service.rejects.code = "a \"code\"\u{7f}".into();
        (service.rejects.share, service.later.lost, service.later.twice) = (25_001, SHARE_MAX, 0);
        (service.outage.every_ms, service.outage.answers, service.later.within_ms) = (1, 500, 61_000);
        service.sample("v1/charges", &json(r#"{"b": [1.50, -0, null, "é\"\u007f\n"], "a.b": {"n": null, "x": true}}"#));
        service.sample("none", &json("null"));
        assert_eq!(service.answers.len(), 1);
        let mut description = Description::default();
        description.set("bank", service);
        description.set("a.b c", Service::default());
        let text = description.to_string();
        assert_eq!(Description::parse(&text).unwrap(), description, "{text}");
        assert!(text.starts_with("[services.\"a.b c\"]\n\n[services.bank]\nlatency.p50 = \"12ms\"\n"), "{text}");
        assert!(!text.contains("rejects.status"), "what is as usual is left out: {text}");
    }

    #[test]
    fn numbers_stay_as_they_are_unless_toml_has_none_like_them() {
        for (body, expected) in [
            (r#"{"a": 12.50, "b": 18446744073709551615}"#, r#"{"a":12.50,"b":18446744073709551615}"#),
            (r#"{"a": 1e400, "b": 18446744073709551616}"#, r#"{"a":"1e400","b":"18446744073709551616"}"#),
            (r#"{"a": [null, [], {}]}"#, r#"{"a":[[],{}]}"#),
        ] {
            assert_eq!(sample(&json(body)), Some(json(expected)), "{body}");
        }
    }
}
