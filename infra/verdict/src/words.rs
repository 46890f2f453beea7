//! What the services of a folder say: bodies in which its mappings find what they name, and which its settings take for
//! what they are.

use config::{AgentSettings, Meaning, Operations, StatusTable};
use domain::workflow::StepRule;
use http::StatusCode;
use rehearsal::described::{Said, Words};
use rehearsal::description::Service;
use serde_json::{Value, json};

use crate::wishes::{has, pointer, pointers, put, wishes};

/// Other statuses of a success than 200.
const SUCCESSES: [u16; 4] = [201, 204, 203, 206];

/// What the service of an agent says of a step.
#[derive(Debug, Clone)]
pub(crate) struct Spoken {
    /// Forward, and of the undo.
    pub(crate) words: [Words; 2],
    /// Whether it tells each result later: no answer means at once that the step is done.
    pub(crate) is_always_later: bool,
    /// What could not be made so that the settings understand it.
    pub(crate) problem: Option<String>,
}

/// What the texts of a step and its agent look at.
pub(crate) struct Texts<'a> {
    /// The table of the step.
    pub(crate) step: &'a toml::Table,
    /// The table of the agent.
    pub(crate) agent: Option<&'a toml::Table>,
    /// Whether the user says with which code the service rejects.
    pub(crate) has_code: bool,
    /// Whether it is another body than the usual one.
    pub(crate) is_variant: bool,
    /// Values that later steps want of this step's output, by the names in it.
    pub(crate) wanted: &'a [(Vec<String>, Value)],
}

/// Makes them.
pub(crate) fn spoken(
    agent: &str,
    service: &Service,
    settings: &AgentSettings,
    rule: &StepRule,
    texts: &Texts<'_>,
) -> Spoken {
    let operations = ["forward", "undo"];
    let tables = [settings.forward_statuses(), settings.undo_statuses()];
    let name = &*rule.name;
    // Of the step, or of all steps of the agent.
    let Operations { forward, undo } = settings.operations(Operations::usual(agent));
    let undo_of_step = format!("{name}/undo");
    let names = [[name, forward, "forward"], [&*undo_of_step, undo, "undo"]];
    let mut problem = None;
    let mut is_always_later = false;
    let words = [0, 1].map(|way| {
        let sample = names[way].iter().find_map(|name| service.answers.get(*name));
        let sample = sample.and_then(|sample| serde_json::from_str(sample.text()).ok());
        let sample_of_no = [format!("{name}/rejected"), "rejected".to_owned()]
            .iter()
            .filter(|_| way == 0)
            .find_map(|name| service.answers.get(&**name))
            .and_then(|sample| serde_json::from_str(sample.text()).ok());
        // One of an operation may be of another step: it gets what this one names.
        let is_sample = service.answers.contains_key(names[way][0]);
        let mut body: Value = sample.unwrap_or_else(|| json!({}));
        if way == 0 {
            fill(&mut body, texts, is_sample);
        }
        let conditions = conditions(texts.agent, operations[way]);
        let done = done(&body, tables[way], &conditions);
        if done.is_none() && tables[way].meaning(StatusCode::OK) != Meaning::UnderWay {
            problem = Some(format!(
                "no answer of this service could be made that its settings take for done: write one as \
                 services.{}.answers.{name} = {{ … }} in rehearsal.toml",
                rule.agent
            ));
        }
        is_always_later |= way == 0 && done.is_none();
        let done = done.unwrap_or_else(|| said(200, &body));
        let taken_on = if tables[way].meaning(StatusCode::ACCEPTED) == Meaning::UnderWay { 202 } else { 200 };
        let mut pending = body.clone();
        poll_places(texts.step, &mut pending);
        let [at_work, found, refused] = looks(texts.step, &body, service);
        Words {
            no: match sample_of_no {
                Some(body) => said(service.rejects.status, &body),
                None => no(service, &body, tables[way], &conditions, texts.has_code),
            },
            nothing: match service.undo_of_nothing {
                ..300 => done.clone(),
                status => nothing(status, &conditions),
            },
            may_come_later: false,
            taken_on: said(taken_on, &pending),
            done,
            at_work,
            found,
            refused,
        }
    });
    Spoken { words, is_always_later, problem }
}

/// The members that `keep` and later steps name. Of a sample only those are others that it has, and that a variant wants.
fn fill(body: &mut Value, texts: &Texts<'_>, is_sample: bool) {
    let mut places = Vec::new();
    if let Some(keep) = texts.step.get("keep") {
        pointers(keep, &mut places);
    }
    for names in places {
        if !is_sample && !has(body, &names) {
            let text = format!("{}-1", names.last().map_or("it", String::as_str));
            put(body, &names, text.into());
        }
    }
    for (names, value) in texts.wanted {
        let kept = match texts.step.get("keep") {
            None => Some(names.clone()),
            Some(toml::Value::Table(keep)) => names.split_first().and_then(|(first, rest)| {
                let mut of_body = pointer(keep.get(first)?.as_str()?.trim_end_matches('?'))?;
                of_body.extend_from_slice(rest);
                Some(of_body)
            }),
            Some(_) => None,
        };
        if let Some(names) = kept
            && (!is_sample || (texts.is_variant && has(body, &names)))
        {
            put(body, &names, value.clone());
        }
    }
}

/// The conditions on bodies: status, text and meaning.
fn conditions(agent: Option<&toml::Table>, operation: &str) -> Vec<(u16, String, String)> {
    let answers = agent.and_then(|agent| agent.get(operation)?.get("answers")?.as_array());
    let of = |answer: &toml::Value| {
        let text = |name| answer.get(name).and_then(toml::Value::as_str).map(str::to_owned);
        let status = answer.get("status")?.as_integer()?.try_into().ok()?;
        Some((status, text("when")?, text("means")?))
    };
    answers.into_iter().flatten().filter_map(of).collect()
}

/// An answer that the settings take for done.
fn done(body: &Value, table: &StatusTable, conditions: &[(u16, String, String)]) -> Option<Said> {
    let of_conditions = conditions.iter().filter(|(_, _, means)| means == Meaning::Done.word());
    let fulfilled = of_conditions.filter(|(status, ..)| *status < 300 || table.meaning(code(*status)) != Meaning::Done);
    let by_condition = fulfilled
        .filter(|(status, ..)| *status < 300)
        .flat_map(|(status, when, _)| [0, 1, 2].map(|choice| (*status, fulfil(body, when, choice))));
    let other = table.statuses.iter().filter(|(_, means)| **means == Meaning::Done).map(|(status, _)| *status);
    let plain = |status: u16| (status, body.clone());
    let means_done = |(status, body): &(u16, Value)| meaning(table, *status, body) == Some(Meaning::Done);
    let all = [plain(200)].into_iter().chain(by_condition).chain(SUCCESSES.into_iter().chain(other).map(plain));
    all.into_iter().find(means_done).map(|(status, body)| said(status, &body))
}

/// The same body with what a condition looks at.
fn fulfil(body: &Value, when: &str, choice: usize) -> Value {
    let mut body = body.clone();
    for wish in wishes(when) {
        if let Some(value) = wish.values.get(choice).or(wish.values.first()) {
            put(&mut body, &wish.names, value.clone());
        }
    }
    body
}

/// What the settings take an answer for.
fn meaning(table: &StatusTable, status: u16, body: &Value) -> Option<Meaning> {
    let text = body.to_string();
    let met = table.conditions.iter().filter(|condition| condition.status == status);
    for condition in met {
        if condition.when.holds_in(&text).ok()? {
            return Some(condition.means);
        }
    }
    Some(table.meaning(code(status)))
}

/// A rejection. One that comes as a success has its code where the condition for it looks, or where a state would be.
fn no(
    service: &Service,
    body: &Value,
    table: &StatusTable,
    conditions: &[(u16, String, String)],
    has_code: bool,
) -> Said {
    let (status, code) = (service.rejects.status, &*service.rejects.code);
    let message = "the service says no";
    if status >= 300 {
        return said(status, &json!({"code": code, "message": message}));
    }
    let mut no = body.clone();
    let states = conditions.iter().flat_map(|(_, when, _)| wishes(when)).filter(|wish| wish.names.len() < 3);
    for names in states.map(|wish| wish.names).chain([vec!["status".to_owned()], vec!["code".to_owned()]]) {
        put(&mut no, &names, code.into());
    }
    put(&mut no, &["message".to_owned()], message.into());
    let by_condition = conditions.iter().filter(|(of, _, means)| *of == status && means == Meaning::No.word());
    // A code of the user's stands, though no condition knows it.
    let made = by_condition.filter(|_| !has_code).map(|(_, when, _)| fulfil(body, when, 0));
    let is_no = |body: &Value| meaning(table, status, body) == Some(Meaning::No);
    let no = [no.clone()].into_iter().chain(made).find(is_no).unwrap_or(no);
    said(status, &no)
}

/// There was nothing to undo. A condition for it knows what the service says then.
fn nothing(status: u16, conditions: &[(u16, String, String)]) -> Said {
    let usual = json!({"code": "not-found", "message": "there is nothing to undo"});
    let known = conditions.iter().find(|(of, _, means)| *of == status && means == Meaning::Done.word());
    said(status, &known.map_or_else(|| usual.clone(), |(_, when, _)| fulfil(&json!({}), when, 0)))
}

/// What the path of the poll names of the answer that took the call on.
fn poll_places(step: &toml::Table, body: &mut Value) {
    let path = step.get("poll").and_then(|poll| poll.get("path")?.as_str()).unwrap_or_default();
    let places = path.split('{').skip(1).filter_map(|part| part.split_once('}'));
    for names in places.filter_map(|(place, _)| pointer(place.trim_end_matches('?').trim_start_matches("answer:"))) {
        let of_order = ["Order", "OrderID", "IdempotencyKey", "SubmittedAt", "Outputs"];
        if !of_order.contains(&&*names[0]) && !has(body, &names) {
            put(body, &names, "call-1".into());
        }
    }
}

/// What it tells of a call that is at work, of one that is done, and of one that is rejected.
fn looks(step: &toml::Table, body: &Value, service: &Service) -> [Said; 3] {
    let Some(poll) = step.get("poll") else { return Default::default() };
    let answers = poll.get("answers").and_then(toml::Value::as_array);
    let text = |answer: &toml::Value, name: &str| answer.get(name).and_then(toml::Value::as_str).map(str::to_owned);
    let that_means = |means: &str| {
        let answer = answers.into_iter().flatten().find(|answer| text(answer, "means").as_deref() == Some(means))?;
        let status = answer.get("status")?.as_integer()?.try_into().ok()?;
        Some((status, text(answer, "when")?))
    };
    // One that the settings do not know: the call itself is rejected once its wait is over.
    let unknown = || said(service.rejects.status.max(400), &json!({"code": &*service.rejects.code}));
    let refused = that_means(Meaning::No.word());
    let refused = refused.map_or_else(unknown, |(status, when): (u16, _)| said(status, &fulfil(body, &when, 0)));
    let [at_work, found] = match that_means(Meaning::Done.word()) {
        Some((status, when)) => {
            let mut at_work = json!({});
            for wish in wishes(&when) {
                put(&mut at_work, &wish.names, "at-work".into());
            }
            [said(200, &at_work), said(status, &fulfil(body, &when, 0))]
        }
        // Any answer in which `keep` finds its values would be the result.
        None if step.get("keep").is_some() => [said(200, &json!({})), said(200, body)],
        None => [said(404, &json!({})), said(200, body)],
    };
    [at_work, found, refused]
}

fn said(status: u16, body: &Value) -> Said {
    Said { status, body: body.to_string().into() }
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::OK)
}

#[cfg(test)]
mod tests {
    use config::Settings;
    use domain::workflow::Workflow;

    use super::*;

    fn spoken_by(agent: &str, step: &str, service: &Service) -> Spoken {
        let agents = format!("[agents.bank]\nurl = \"http://localhost:1\"\n{agent}\n");
        let workflow = format!("name = \"w\"\nversion = 1\n[[step]]\nname = \"pay\"\nagent = \"bank\"\n{step}\n");
        let settings = Settings::parse("stepwarden.toml", &agents).unwrap();
        let rule = Workflow::parse(&workflow, &["bank"]).unwrap().steps[0].clone();
        let [agents, workflow]: [toml::Table; 2] = [agents, workflow].map(|text| text.parse().unwrap());
        let texts = Texts {
            step: workflow["step"][0].as_table().unwrap(),
            agent: agents["agents"]["bank"].as_table(),
            has_code: true,
            is_variant: false,
            wanted: &[],
        };
        spoken("bank", service, settings.of("bank").unwrap(), &rule, &texts)
    }

    #[test]
    fn an_answer_has_what_keep_names_and_is_done() {
        let spoken = spoken_by("", "keep = { ID = \"/payment/id\" }\nundo = \"none\"", &Service::default());
        assert_eq!(spoken.words[0].done, said(200, &json!({"payment": {"id": "id-1"}})));
        assert_eq!(spoken.words[0].no.status, 422);
    }

    #[test]
    fn a_body_fulfils_the_condition_that_means_done() {
        let agent = "forward.status = { 200 = \"no\" }\nforward.answers = [{ status = 200, when = \"/status in ['paid', 'held']\", means = \"done\" }]";
        let spoken = spoken_by(agent, "undo = \"none\"", &Service::default());
        assert_eq!(spoken.words[0].done, said(200, &json!({"status": "paid"})));
        assert!(!spoken.is_always_later && spoken.problem.is_none());
    }

    #[test]
    fn a_provider_of_events_takes_each_call_on() {
        let spoken = spoken_by(
            "forward.status = { 200 = \"under-way\" }",
            "wait_within = \"1d\"\nundo = \"none\"",
            &Service::default(),
        );
        assert!(spoken.is_always_later && spoken.problem.is_none());
        assert_eq!(spoken.words[0].taken_on.status, 202);
    }

    #[test]
    fn a_no_within_a_success_stands_where_states_stand() {
        let mut service = Service::default();
        (service.rejects.status, service.rejects.code) = (200, "declined".into());
        let spoken = spoken_by("", "keep = { ID = \"/id\" }\nundo = \"none\"", &service);
        let no: Value = serde_json::from_str(&spoken.words[0].no.body).unwrap();
        assert_eq!((&no["status"], &no["code"], &no["id"]), (&json!("declined"), &json!("declined"), &json!("id-1")));
    }
}
