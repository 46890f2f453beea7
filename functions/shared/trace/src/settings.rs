//! The settings of tracing, from OpenTelemetry's environment variables.
//!
//! | variable | means |
//! | --- | --- |
//! | `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` | the URL that spans are posted to |
//! | `OTEL_EXPORTER_OTLP_ENDPOINT` | or the base URL of it, to which `/v1/traces` is added |
//! | `OTEL_EXPORTER_OTLP_TRACES_HEADERS`, `OTEL_EXPORTER_OTLP_HEADERS` | headers to go with it, `name=value,name=value`, percent-encoded |
//! | `OTEL_EXPORTER_OTLP_TRACES_TIMEOUT`, `OTEL_EXPORTER_OTLP_TIMEOUT` | how long it may take, in ms; 10000 |
//! | `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL`, `OTEL_EXPORTER_OTLP_PROTOCOL` | `http/json`; `http/protobuf` is taken for the same, since collectors take both; `grpc` is not there |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | what the process is called |
//! | `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG` | `parentbased_always_on` (the usual one), `parentbased_always_off`, `parentbased_traceidratio`, `always_on`, `always_off`, `traceidratio`, and the share |
//! | `OTEL_SDK_DISABLED=true`, `OTEL_TRACES_EXPORTER=none` | off, whatever else is said |
//!
//! Without the first two, tracing is off. An unreadable value is logged and ignored; it never prevents a start.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use crate::sampler::{Sampler, Share};

/// The path of the export, under a base URL.
const PATH: &str = "v1/traces";
/// The default time-out of a request to the collector.
const TIMEOUT_MS: u64 = 10_000;

/// The settings of the export and the sampler.
#[derive(Debug, Clone)]
pub struct Settings {
    pub(crate) endpoint: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) timeout: Duration,
    /// Attributes of the process, its name among them.
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) sampler: Sampler,
    /// The messaging system between the functions.
    pub(crate) messaging: &'static str,
}

/// The result of reading the environment.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The settings; `None` if tracing is off.
    pub settings: Option<Settings>,
    /// The unreadable values, as messages for the log.
    pub problems: Vec<String>,
}

impl Settings {
    /// Reads the variables with `lookup`; an empty one counts as unset. `service` is the default name of the process.
    /// `messaging` is the messaging system, such as `aws_sqs`.
    #[must_use]
    pub fn read(lookup: impl Fn(&str) -> Option<String>, service: &str, messaging: &'static str) -> Reading {
        let mut reader = Reader { lookup: &lookup, problems: Vec::new() };
        let settings = reader.settings(service, messaging);
        Reading { settings, problems: reader.problems }
    }

    /// The same with this longest time-out of a request, in milliseconds.
    #[must_use]
    pub fn within_ms(self, most_ms: u64) -> Self {
        Self { timeout: self.timeout.min(Duration::from_millis(most_ms)), ..self }
    }

    /// With one more attribute of the process, unless the environment has said it.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if self.resource.iter().all(|(known, _)| known != name) {
            self.resource.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Whether the way to the collector is TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.endpoint.scheme_str() == Some("https")
    }
}

struct Reader<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn settings(&mut self, service: &str, messaging: &'static str) -> Option<Settings> {
        let is_off = self.text("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"))
            || self.text("OTEL_TRACES_EXPORTER").is_some_and(|text| text == "none");
        let (variable, url) = self.url().filter(|_| !is_off)?;
        if self.exporter("PROTOCOL").is_some_and(|(_, protocol)| protocol == "grpc") {
            self.problem("OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not there, only http/json; no traces are made");
            return None;
        }
        let endpoint = match endpoint(&url) {
            Some(endpoint) => endpoint,
            None => {
                self.problem(format!("{variable}: not a URL such as http://localhost:4318; no traces are made"));
                return None;
            }
        };
        Some(Settings {
            endpoint,
            headers: self.headers(),
            timeout: self.timeout(),
            resource: self.resource(service),
            sampler: self.sampler(),
            messaging,
        })
    }

    /// The URL that spans are posted to, and the variable that has it.
    fn url(&self) -> Option<(&'static str, String)> {
        const WHOLE: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let base = || self.text(BASE).map(|base| (BASE, format!("{}/{PATH}", base.trim_end_matches('/'))));
        self.text(WHOLE).map(|url| (WHOLE, url)).or_else(base)
    }

    fn headers(&mut self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some((variable, text)) = self.exporter("HEADERS") else { return headers };
        for (place, pair) in pairs(&text).enumerate() {
            let header = pair.and_then(|(name, value)| {
                let mut value = HeaderValue::try_from(value).ok()?;
                value.set_sensitive(true);
                Some((HeaderName::try_from(name).ok()?, value))
            });
            match header {
                Some((name, value)) => drop(headers.insert(name, value)),
                // The text may hold a key.
                None => self.problem(format!("{variable}: number {} is no name=value; it is left out", place + 1)),
            }
        }
        headers
    }

    fn timeout(&mut self) -> Duration {
        let timeout_ms = match self.exporter("TIMEOUT") {
            Some((variable, text)) => match text.parse() {
                Ok(ms) if ms > 0 => ms,
                Ok(_) | Err(_) => {
                    self.problem(format!("{variable}: not a number of milliseconds; it is {TIMEOUT_MS}"));
                    TIMEOUT_MS
                }
            },
            None => TIMEOUT_MS,
        };
        Duration::from_millis(timeout_ms)
    }

    fn resource(&mut self, service: &str) -> Vec<(String, String)> {
        const NAME: &str = "service.name";
        let mut resource = Vec::new();
        let said = self.text("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        for pair in pairs(&said) {
            match pair {
                Some((name, value)) => resource.push((name.to_owned(), value)),
                None => self.problem("OTEL_RESOURCE_ATTRIBUTES: not name=value,name=value; what is not is left out"),
            }
        }
        let named = self.text("OTEL_SERVICE_NAME");
        if named.is_some() {
            resource.retain(|(name, _)| name != NAME);
        }
        if resource.iter().all(|(name, _)| name != NAME) {
            resource.push((NAME.to_owned(), named.unwrap_or_else(|| service.to_owned())));
        }
        resource
    }

    fn sampler(&mut self) -> Sampler {
        let Some(name) = self.text("OTEL_TRACES_SAMPLER") else { return Sampler::default() };
        let (follows_parent, root) = match name.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, &*name),
        };
        let root = match root {
            "always_on" => Share::All,
            "always_off" => Share::None,
            "traceidratio" => Share::Ratio(self.ratio()),
            _ => {
                self.problem("OTEL_TRACES_SAMPLER: no such sampler; it is parentbased_always_on");
                return Sampler::default();
            }
        };
        Sampler { follows_parent, root }
    }

    fn ratio(&mut self) -> f64 {
        let Some(text) = self.text("OTEL_TRACES_SAMPLER_ARG") else { return 1.0 };
        match text.parse() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
            Ok(_) | Err(_) => {
                self.problem("OTEL_TRACES_SAMPLER_ARG: not a number from 0 to 1; it is 1");
                1.0
            }
        }
    }

    /// A variable of the exporter: the one for traces, else the one for everything.
    fn exporter(&self, what: &str) -> Option<(String, String)> {
        let names = [format!("OTEL_EXPORTER_OTLP_TRACES_{what}"), format!("OTEL_EXPORTER_OTLP_{what}")];
        names.into_iter().find_map(|name| self.text(&name).map(|text| (name, text)))
    }

    fn text(&self, name: &str) -> Option<String> {
        (self.lookup)(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn problem(&mut self, words: impl Into<String>) {
        self.problems.push(words.into());
    }
}

fn endpoint(url: &str) -> Option<Uri> {
    let uri: Uri = url.parse().ok()?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    (is_http && uri.host().is_some_and(|host| !host.is_empty())).then_some(uri)
}

/// The pairs of `name=value,name=value`, values percent-decoded. An
/// entry without `=` is `None`. An empty entry is skipped.
fn pairs(text: &str) -> impl Iterator<Item = Option<(&str, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| {
        let (name, value) = part.split_once('=')?;
        Some((name.trim(), decoded(value.trim())?)).filter(|(name, _)| !name.is_empty())
    })
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        match (first, more) {
            (b'%', [high, low, more @ ..]) => {
                let digits = [char::from(*high).to_digit(16)?, char::from(*low).to_digit(16)?];
                bytes.push(u8::try_from(digits[0] * 16 + digits[1]).ok()?);
                rest = more;
            }
            (b'%', _) => return None,
            (byte, more) => {
                bytes.push(*byte);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Reading {
        let lookup =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Settings::read(lookup, "stepwarden-api", "aws_sqs")
    }

    const BASE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

    #[test]
    fn without_a_collector_or_with_an_empty_one_there_are_no_traces_and_no_problems() {
        for variables in [
            &[][..],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " "), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")],
            &[("OTEL_TRACES_SAMPLER", "nonsense"), ("OTEL_EXPORTER_OTLP_HEADERS", "nonsense")],
            &[BASE, ("OTEL_SDK_DISABLED", "TRUE")],
            &[BASE, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            let Reading { settings, problems } = read(variables);
            assert!(settings.is_none() && problems.is_empty(), "{variables:?}: {settings:?} {problems:?}");
        }
    }

    #[test]
    fn a_base_gets_the_path_and_a_whole_url_is_taken_as_it_is_and_goes_before() {
        let endpoint = |variables: &[(&str, &str)]| read(variables).settings.unwrap().endpoint.to_string();
        assert_eq!(endpoint(&[BASE]), "http://collector:4318/v1/traces");
        assert_eq!(endpoint(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/otlp/")]), "https://c/otlp/v1/traces");
        let whole = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c/in");
        assert_eq!(endpoint(&[BASE, whole]), "https://c/in");
        assert!(read(&[whole]).settings.unwrap().is_tls() && !read(&[BASE]).settings.unwrap().is_tls());
    }

    #[test]
    fn a_collector_that_cannot_be_reached_like_this_is_a_problem_and_no_more() {
        for (name, value, words) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "OTEL_EXPORTER_OTLP_ENDPOINT: not a URL"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://c", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: not a URL"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc", "grpc is not there"),
        ] {
            let Reading { settings, problems } = read(&[(name, value), BASE]);
            assert!(settings.is_none() && problems.len() == 1 && problems[0].contains(words), "{problems:?}");
        }
    }

    #[test]
    fn headers_are_decoded_and_one_that_is_none_is_left_out_without_being_told() {
        let headers = "api-key=a%3Db%2C, x-team = orders,,bad name=secret,rest=%zz";
        let Reading { settings, problems } = read(&[BASE, ("OTEL_EXPORTER_OTLP_HEADERS", headers)]);
        let settings = settings.unwrap();
        assert_eq!(
            (&settings.headers["api-key"], &settings.headers["x-team"]),
            (&"a=b,".parse().unwrap(), &"orders".parse().unwrap())
        );
        assert_eq!((settings.headers.len(), problems.len()), (2, 2), "{problems:?}");
        assert!(problems.iter().all(|problem| !problem.contains("secret")), "{problems:?}");
        assert!(!format!("{settings:?}").contains("a=b"), "nor are they in any log");
    }

    #[test]
    fn the_process_is_called_as_the_environment_says_else_by_its_own_name() {
        let named = |variables: &[(&str, &str)]| read(variables).settings.unwrap().with("cloud.region", "r").resource;
        let text =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
        assert_eq!(named(&[BASE]), text(&[("service.name", "stepwarden-api"), ("cloud.region", "r")]));
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,cloud.region=here");
        assert_eq!(named(&[BASE, attributes]), text(&[("service.name", "a"), ("cloud.region", "here")]));
        let own = ("OTEL_SERVICE_NAME", "b");
        assert_eq!(named(&[BASE, attributes, own]), text(&[("cloud.region", "here"), ("service.name", "b")]));
    }

    #[test]
    fn samplers_have_the_names_of_opentelemetry_and_a_strange_one_is_the_usual_one() {
        let sampler = |name: &str, share: &str| {
            let Reading { settings, problems } =
                read(&[BASE, ("OTEL_TRACES_SAMPLER", name), ("OTEL_TRACES_SAMPLER_ARG", share)]);
            (settings.unwrap().sampler, problems.len())
        };
        let of = |follows_parent, root| Sampler { follows_parent, root };
        for (name, share, expected, problems) in [
            ("", "", of(true, Share::All), 0),
            ("always_on", "", of(false, Share::All), 0),
            ("always_off", "", of(false, Share::None), 0),
            ("traceidratio", "0.25", of(false, Share::Ratio(0.25)), 0),
            ("parentbased_always_on", "", of(true, Share::All), 0),
            ("parentbased_always_off", "", of(true, Share::None), 0),
            ("parentbased_traceidratio", "", of(true, Share::Ratio(1.0)), 0),
            ("parentbased_traceidratio", "2", of(true, Share::Ratio(1.0)), 1),
            ("traceidratio", "half", of(false, Share::Ratio(1.0)), 1),
            ("jaeger_remote", "", of(true, Share::All), 1),
        ] {
            assert_eq!(sampler(name, share), (expected, problems), "{name} {share}");
        }
    }

    #[test]
    fn a_host_can_be_less_patient_than_the_environment_but_not_more() {
        let timeout =
            |variables: &[(&str, &str)]| read(variables).settings.unwrap().within_ms(1_000).timeout.as_millis();
        assert_eq!(timeout(&[BASE]), 1_000);
        assert_eq!(timeout(&[BASE, ("OTEL_EXPORTER_OTLP_TIMEOUT", "200")]), 200);
        assert_eq!(read(&[BASE, ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")]).problems.len(), 1);
    }
}
