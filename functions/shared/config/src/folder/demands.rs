//! What a workflow must not say, which only a look at the settings of its agents finds.

use domain::workflow::StepRule;

use super::{Checked, CheckedWorkflow, Fault, located};
use crate::settings::Settings;

/// The end of the key of an undo (rule 4). As the name of a step, services would take its call for an undo.
const UNDO: &str = "undo";

/// What a workflow of a folder must not say.
pub(super) fn of(workflow: &CheckedWorkflow, settings: &Settings) -> Vec<Fault> {
    faults(workflow, |step| problem(step, settings))
}

impl Checked {
    /// What an applied workflow must not come to mean when the answers of one of these agents change their meaning.
    pub(crate) fn demands_of(&self, workflow: &CheckedWorkflow, is_changed: impl Fn(&str) -> bool) -> Vec<Fault> {
        faults(workflow, |step| {
            silent(step, &self.settings).filter(|_| step.service().is_some_and(|it| is_changed(it)))
        })
    }
}

fn faults(
    CheckedWorkflow { file, text, workflow }: &CheckedWorkflow,
    problem: impl Fn(&StepRule) -> Option<String>,
) -> Vec<Fault> {
    let of_step = |step: &StepRule| {
        let problem = format!("step {:?}: {}", step.name, problem(step)?);
        let at = text.find(&format!("{:?}", step.name)).unwrap_or_default();
        Some(Fault { file: file.clone(), fault: located::Fault::at(text, at, problem) })
    };
    workflow.steps.iter().filter_map(of_step).collect()
}

fn problem(step: &StepRule, settings: &Settings) -> Option<String> {
    if *step.name == *UNDO {
        return Some("the name is reserved: the key of its call would end as that of an undo".to_owned());
    }
    let agent = step.service().filter(|_| step.poll.is_some());
    if let Some(agent) = agent.filter(|name| settings.of(name).is_some_and(|agent| agent.policy.memo.is_some())) {
        return Some(format!(
            "it has a poll, and [agents.{agent}] a memo, which asks for the result by the same call. Leave one of them out"
        ));
    }
    silent(step, settings)
}

/// The step waits for an event, and its agent does not say what a plain 200 means.
fn silent(step: &StepRule, settings: &Settings) -> Option<String> {
    let agent = step.service()?;
    let statuses = settings.of(agent).filter(|agent| agent.webhook.is_some())?.forward_statuses();
    // A condition says what some of them mean.
    step.waits.within_ms.filter(|_| !statuses.statuses.contains_key(&200))?;
    Some(format!(
        "it waits for an event of agent {agent}, and a plain 200 of the service would be the result before. Say in \
         [agents.{agent}] what it means: forward.status = {{ 200 = \"under-way\" }} if the result comes later, \"done\" if \
         it is the result; forward.answers may say otherwise of some bodies"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::Folder;

    /// The faults of a folder with this agent and this step.
    fn demands(agent: &str, step: &str) -> Vec<String> {
        let workflow = format!("name = \"w\"\nversion = 1\n\n[[step]]\n{step}\n");
        let files = [("stepwarden.toml", agent), ("workflows/w-1.toml", &workflow)];
        let checked = Folder::check(&files.map(|(name, text)| (name.to_owned(), text.to_owned())));
        checked.err().map_or_else(Vec::new, |faults| faults.0.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_step_named_like_the_mark_of_an_undo_and_an_agent_named_like_people_are_reserved() {
        let step = |name: &str, agent: &str| format!("name = {name:?}\nagent = {agent:?}");
        let found = demands("[agents.mine]", &step("undo", "mine"));
        assert!(
            found.len() == 1 && found[0].starts_with("workflows/w-1.toml:5:8: step \"undo\": the name is reserved"),
            "{found:?}"
        );
        let found = demands("[agents.people]", &step("call", "people"));
        assert!(found.iter().any(|fault| fault.contains("agents.people is reserved")), "{found:?}");
        for name in ["Undo", "undo-it", "people", "heartbeat", "erased"] {
            assert!(demands("[agents.mine]", &step(name, "mine")).is_empty(), "{name}");
        }
        assert!(demands("", "name = \"ask\"\nkind = \"approval\"").is_empty());
    }

    #[test]
    fn rule_36_a_step_whose_agent_has_a_memo_is_not_polled() {
        let step = "name = \"pay\"\nagent = \"bank\"\nwait_within = \"1h\"\nkeep = \"/id\"\npoll.path = \"a/{/id}\"";
        let found = demands("[agents.bank]\nmemo = true", step);
        assert!(found.len() == 1 && found[0].contains("it has a poll, and [agents.bank] a memo"), "{found:?}");
        assert!(demands("[agents.bank]", step).is_empty());
    }

    #[test]
    fn rule_41_an_agent_with_a_webhook_says_what_a_200_means_where_a_step_waits_for_its_event() {
        let webhook = "[agents.bank.webhook]\nsecret = \"env:A\"\nscheme = \"github\"\nkey = \"/k\"\nevent = \"/e\"\ndone = [\"d\"]\n";
        let (pay, waits) =
            ("name = \"pay\"\nagent = \"bank\"", "name = \"pay\"\nagent = \"bank\"\nwait_within = \"1h\"");
        let agent = |forward: &str, webhook: &str| format!("[agents.bank]\n{forward}\n{webhook}");
        let condition = |status: u16| {
            format!("forward.answers = [{{ status = {status}, when = \"/s == 'paid'\", means = \"done\" }}]")
        };
        for silent in [
            "",
            "forward = \"charge\"",
            "forward.status = { 201 = \"under-way\" }",
            &condition(201),
            &condition(200),
            "undo.status = { 200 = \"done\" }",
        ] {
            let found = demands(&agent(silent, webhook), waits);
            assert!(
                found.len() == 1 && found[0].contains("what it means: forward.status = { 200 = \"under-way\" }"),
                "{silent}: {found:?}"
            );
        }
        for said in ["forward.status = { 200 = \"under-way\" }", "forward.status = { 200 = \"done\" }"] {
            assert!(demands(&agent(said, webhook), waits).is_empty(), "{said}");
        }
        assert!(demands(&agent("", webhook), pay).is_empty(), "it waits for no event");
        assert!(demands(&agent("", ""), waits).is_empty(), "the service is told an address, and no provider tells it");
    }
}
