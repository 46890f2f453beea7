//! `stepwarden workflows`: all of them as a table, one as a drawing or as its file, and the version of new orders.

use local::terminal::lines;
use wire::{Choose, Definition, Workflow, WorkflowList, WorkflowStep};

use super::context::{Context, body};
use super::error::CommandError;
use crate::args::{ChooseArgs, RetireArgs, WorkflowName, WorkflowsArgs, WorkflowsCommand};
use crate::exit::Exit;
use crate::remote::{Answer, Call, encoded};
use crate::show::drawing::{picture, steps, waits};
use crate::show::table::{Table, plain};
use crate::show::time::span;

/// `stepwarden workflows [NAME[/VERSION]]`.
pub(super) async fn run(context: &Context, args: &WorkflowsArgs) -> Result<Exit, CommandError> {
    match &args.command {
        Some(WorkflowsCommand::Choose(args)) => return choose(context, args).await,
        Some(WorkflowsCommand::Retire(args)) => return retire(context, args).await,
        None => {}
    }
    let answer = context.remote.call(&Call::get("/workflows")).await?;
    let Some(wanted) = &args.workflow else { return list(context, &answer) };
    let WorkflowList { workflows } = answer.read()?;
    let Some(workflow) = chosen(&workflows, wanted) else {
        note_unknown(context, &workflows, wanted);
        return Ok(Exit::NotFound);
    };
    if args.text {
        return file(context, &format!("{}/{}", encoded(&workflow.name), workflow.version)).await;
    }
    match context.is_json() {
        true => context.line(&body(workflow)),
        false => context.print(&text(workflow, &workflows, context)),
    }
}

/// Says so if it is known that there is no such workflow.
pub(super) async fn note_if_unknown(context: &Context, wanted: &WorkflowName) {
    if let Ok(WorkflowList { workflows }) = context.remote.get::<WorkflowList<'static>>("/workflows").await
        && chosen(&workflows, wanted).is_none()
    {
        note_unknown(context, &workflows, wanted);
    }
}

fn note_unknown(context: &Context, workflows: &[Workflow<'_>], wanted: &WorkflowName) {
    context.note(&format!("there is no workflow {wanted}, but {}", names(workflows)));
}

fn list(context: &Context, answer: &Answer) -> Result<Exit, CommandError> {
    context.show(answer, |WorkflowList { workflows }: WorkflowList<'static>| {
        table(&rows(&workflows, &workflows)).text(context.paint)
    })
}

/// The file of a version, as it was applied.
async fn file(context: &Context, version: &str) -> Result<Exit, CommandError> {
    let path = format!("/workflows/{version}");
    context.show_path(&path, |definition: Definition<'static>| lines(&definition.text)).await
}

async fn choose(context: &Context, args: &ChooseArgs) -> Result<Exit, CommandError> {
    let ChooseArgs { workflow, share, default, command } = args;
    let command = context.command(command)?;
    let choose = Choose {
        by: command.by,
        reason: command.reason,
        version: version(workflow)?,
        share_percent: *share,
        default: *default,
    };
    let call = Call::post(format!("/workflows/{}/choose", encoded(&workflow.name)), body(&choose));
    let answer = told(context, call, || format!("{workflow} was chosen")).await?;
    if context.is_json() {
        return list(context, &answer);
    }
    let share = share.filter(|share| *share < 100).map(|share| format!("{share} % of ")).unwrap_or_default();
    let default = if *default { ", and so do orders that name no workflow" } else { "" };
    context.note(&format!("{share}new orders of {} begin with {workflow}{default}", workflow.name));
    Ok(Exit::Fine)
}

async fn retire(context: &Context, args: &RetireArgs) -> Result<Exit, CommandError> {
    let RetireArgs { workflow, command } = args;
    let path = format!("/workflows/{}/{}/retire", encoded(&workflow.name), version(workflow)?);
    let call = Call::post(path, body(&context.command(command)?));
    let answer = told(context, call, || format!("{workflow} was retired")).await?;
    if context.is_json() {
        return context.line(&answer.line());
    }
    context.note(&format!("{workflow} is retired: no order begins with it"));
    Ok(Exit::Fine)
}

/// The answer to a change. Twice is once, so a repeat after a lost answer is safe.
async fn told(context: &Context, call: Call, what: impl FnOnce() -> String) -> Result<Answer, CommandError> {
    let answer = context.remote.call(&call).await;
    answer.map_err(|error| CommandError::of_change(error, what(), "stepwarden workflows"))
}

fn version(workflow: &WorkflowName) -> Result<u32, CommandError> {
    let missing = || CommandError::usage(format!("{workflow} names no version: write {workflow}/2"));
    workflow.version.ok_or_else(missing)
}

/// The wanted version. Without a version the one that new orders get, or else the last one.
fn chosen<'a, 'b>(workflows: &'a [Workflow<'b>], wanted: &WorkflowName) -> Option<&'a Workflow<'b>> {
    let named = || workflows.iter().filter(|workflow| *workflow.name == *wanted.name);
    match wanted.version {
        Some(version) => named().find(|workflow| workflow.version == version),
        None => named().find(|workflow| workflow.current).or_else(|| named().max_by_key(|workflow| workflow.version)),
    }
}

/// All names with their versions: `order/1, return/1`.
fn names(workflows: &[Workflow<'_>]) -> String {
    let names = workflows.iter().map(|workflow| format!("{}/{}", plain(&workflow.name), workflow.version));
    names.collect::<Vec<_>>().join(", ")
}

/// Its drawing, and its settings as a table.
fn text(workflow: &Workflow<'_>, all: &[Workflow<'_>], context: &Context) -> String {
    let rows = rows(std::slice::from_ref(workflow), all);
    let head = format!("{}, version {} ({})", plain(&workflow.name), workflow.version, new_orders(workflow, all));
    format!("{head}\n\n{}\n{}", picture(&steps(&workflow.steps), context.paint), table(&rows).text(context.paint))
}

/// A step, and the name and the version of its workflow if it is the first one.
type Row<'a> = (Option<(&'a str, String)>, &'a WorkflowStep<'a>);

fn rows<'a>(workflows: &'a [Workflow<'_>], all: &[Workflow<'_>]) -> Vec<Row<'a>> {
    let of = |workflow: &'a Workflow<'_>| {
        let version = format!("{} ({})", workflow.version, new_orders(workflow, all));
        let firsts = std::iter::once(Some((&*workflow.name, version))).chain(std::iter::repeat(None));
        firsts.zip(&workflow.steps)
    };
    workflows.iter().flat_map(of).collect()
}

fn table<'a>(rows: &'a [Row<'a>]) -> Table<'a, Row<'a>> {
    Table::of(rows)
        .column("WORKFLOW", |(first, _)| first.as_ref().map(|(name, _)| *name))
        .column("VERSION", |(first, _)| first.as_ref().map(|(_, version)| &**version))
        .column("STEP", |(_, step)| &*step.name)
        .column("AGENT", |(_, step)| &*step.agent)
        .column("AFTER", |(_, step)| step.after.join(", "))
        .column("WITHIN", |(_, step)| step.complete_within_ms.map(span))
        .column("FAILURES", |(_, step)| step.max_failures)
        .column("REJECTED", |(_, step)| if step.optional { Some("skip") } else { step.on_rejected.as_deref() })
        .column("EXHAUSTED", |(_, step)| on_exhausted(step))
        .column("WHEN", |(_, step)| step.when.join(", "))
        .column("WAITS", |(_, step)| waits(step.wait_ms, step.not_before.as_deref(), step.wait_within_ms).join(", "))
        .column("PIVOT", |(_, step)| step.pivot.then_some("pivot"))
}

/// Which new orders begin with a version: `20 % of new orders, default`.
fn new_orders(workflow: &Workflow<'_>, all: &[Workflow<'_>]) -> String {
    let mut others = all.iter().filter(|other| other.name == workflow.name && !other.current);
    let shared = others.find_map(|other| other.share_percent);
    let share = match (workflow.current, shared, workflow.share_percent) {
        _ if workflow.retired_at.is_some() => "retired".to_owned(),
        (true, Some(percent), _) => format!("{} % of new orders", 100_u8.saturating_sub(percent)),
        (true, None, _) => "new orders".to_owned(),
        (false, _, Some(percent)) => format!("{percent} % of new orders"),
        (false, _, None) => "no new orders".to_owned(),
    };
    if workflow.default { format!("{share}, default") } else { share }
}

/// What becomes of the order if the step is given up, after its longer waits.
fn on_exhausted(step: &WorkflowStep<'_>) -> String {
    let then = step.on_exhausted.as_deref().unwrap_or_default();
    match step.longer_wait_ms.zip(step.longer_waits) {
        Some((ms, times)) => format!("{times} × {}, then {then}", span(ms)),
        None => then.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_alone_means_the_version_of_new_orders_and_else_the_last_one() {
        let one = |name, version, current| json!({"Name": name, "Version": version, "Current": current, "Priority": "normal", "Steps": []});
        let workflows =
            [one("a", 1, false), one("a", 2, true), one("a", 3, false), one("b", 2, false), one("b", 1, false)];
        let workflows: Vec<Workflow<'static>> =
            workflows.into_iter().map(|workflow| serde_json::from_value(workflow).unwrap()).collect();
        for (wanted, expected) in [("a", Some(2)), ("a/3", Some(3)), ("a/4", None), ("b", Some(2)), ("c", None)] {
            let found = chosen(&workflows, &wanted.parse().unwrap());
            assert_eq!(found.map(|workflow| workflow.version), expected, "{wanted}");
        }
        assert_eq!(names(&workflows), "a/1, a/2, a/3, b/2, b/1");
    }

    #[test]
    fn which_new_orders_begin_with_a_version_is_said_in_words() {
        let one = |version, more: serde_json::Value| {
            let mut workflow =
                json!({"Name": "a", "Version": version, "Current": false, "Priority": "normal", "Steps": []});
            workflow.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value::<Workflow<'static>>(workflow).unwrap()
        };
        let workflows = [
            one(1, json!({"RetiredAt": "2026-11-20T17:26:43.007Z"})),
            one(2, json!({"Current": true, "Default": true})),
            one(3, json!({"SharePercent": 20, "Default": true})),
            one(4, json!({})),
        ];
        let words = workflows.iter().map(|workflow| new_orders(workflow, &workflows));
        let expected = ["retired", "80 % of new orders, default", "20 % of new orders, default", "no new orders"];
        assert_eq!(words.collect::<Vec<_>>(), expected);
        assert_eq!(new_orders(&workflows[1], &workflows[..2]), "new orders, default");
    }
}
