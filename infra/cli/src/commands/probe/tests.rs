//! A service that keeps all rules, and one for each rule that is broken.

mod stub;

use std::sync::atomic::AtomicBool;

use config::Folder as Files;
use domain::task::Direction;

use super::judge::{Assumption, Verdict};
use super::*;
use stub::{Breaks, Stub, TOKEN};
use verdict::day::Assume;
use verdict::folder::Given;
use verdict::worlds::run_all;

const WORKFLOW: &str = r#"
name = "shop"
version = 1
[[step]]
name = "reserve"
agent = "stock"
send = { item = "/Order/Item" }
keep = { ID = "/ID" }
[step.undo]
send = { item = "/Order/Item" }
[[step]]
name = "charge"
agent = "bank"
after = ["reserve"]
send = { amount = "= /Order/Total * 100", hold = "/Outputs/reserve/ID" }
[step.undo]
send = { hold = "/Outputs/reserve/ID" }
"#;

const ORDER: &str = r#"{"Item": "mug", "Total": 12.5, "Colour": "blue"}"#;

fn variable(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| TOKEN.to_owned())
}

fn args() -> ProbeArgs {
    ProbeArgs {
        folder: ".".into(),
        agents: vec!["bank".to_owned()],
        order: "-".into(),
        workflow: None,
        steps: Vec::new(),
        dry_run: false,
        write: false,
        force: false,
    }
}

/// A folder with both services, and more lines for the bank.
fn files(stock: &Stub, bank: &Stub, more: &str) -> Vec<(String, String)> {
    let agent =
        |name: &str, stub: &Stub| format!("[agents.{name}]\nurl = \"{}\"\nauth.bearer = \"env:TOKEN\"\n", stub.url);
    let settings = format!("default = \"shop\"\n{}{}{more}", agent("stock", stock), agent("bank", bank));
    let is_told_later = bank.breaks == Breaks::Callback;
    let wait = if is_told_later { "agent = \"bank\"\nwait_within = \"1h\"" } else { "agent = \"bank\"" };
    let workflow = WORKFLOW.replace("agent = \"bank\"", wait);
    [(DEPLOYMENT_FILE, &*settings), ("workflows/shop-1.toml", &*workflow)]
        .map(|(name, text)| (name.into(), text.into()))
        .into()
}

/// What is found out about a bank, and what a rehearsal is told; both stubs and the announcement.
async fn probed(breaks: Breaks, more: &str) -> (Probed, Description, [Stub; 2], Vec<Called>) {
    let [stock, bank] = [Stub::start(Breaks::Nothing).await, Stub::start(breaks).await];
    let files = files(&stock, &bank, more);
    let checked = Files::check(&files).unwrap();
    let probe = Probe::of(&checked, &ORDER.into(), &args(), variable).unwrap();
    let called = probe.called().unwrap();
    let caller = probe.caller(&called, variable).await.unwrap();
    let (mut probed, description) = probe.made(&caller, &files).await.unwrap();
    let probed = probed.remove(0);
    // Whatever is proposed is accepted, and the description is read back.
    let pasted = self::files(&stock, &bank, &(probed.settings.join("\n") + "\n"));
    assert!(Files::check(&pasted).is_ok(), "{:?}", probed.settings);
    assert_eq!(Description::parse(&description.to_string()).unwrap(), description);
    assert_eq!(rehearsed(pasted, &description), Vec::<String>::new());
    for (stub, agent) in [(&stock, "stock"), (&bank, "bank")] {
        let books = stub.books.lock().unwrap();
        let counts = called.iter().find(|called| &*called.agent == agent).unwrap().counts;
        assert!(books.calls[0] <= counts.forward && books.calls[1] <= counts.undo, "{agent}: {counts:?}, {books:?}");
    }
    (probed, description, [stock, bank], called)
}

/// What goes wrong in worlds of a folder with these services.
fn rehearsed(files: Vec<(String, String)>, description: &Description) -> Vec<String> {
    let given = Given { files, description: description.clone(), orders: vec![serde_json::from_str(ORDER).unwrap()] };
    let folder = given.ready().unwrap();
    let seen = run_all(&folder, 0..14, Assume::All, 2, &AtomicBool::new(false), &|_| {});
    seen.found.values().map(|found| format!("{:?} in {:?}", found.violation, found.seeds)).collect()
}

/// The assumptions that have this verdict.
fn with(probed: &Probed, verdict: Verdict) -> Vec<Assumption> {
    probed.findings.iter().filter(|it| it.verdict == verdict).map(|it| it.assumption).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_17_all_holds_of_an_honest_service_and_nothing_stays_there() {
    let (probed, description, [stock, bank], called) = probed(Breaks::Nothing, "").await;
    // On a busy machine the time of a repeat does not tell whether the service worked anew.
    let told = [with(&probed, Verdict::Holds), with(&probed, Verdict::CannotTell)];
    assert!(
        told[0].len() + told[1].len() == 9 && told[1].iter().all(|of| *of == Assumption::HungUp),
        "{:#?}",
        probed.findings
    );
    assert!(!probed.is_broken() && probed.settings.is_empty(), "{:?}", probed.settings);
    for stub in [&stock, &bank] {
        let books = stub.books.lock().unwrap();
        assert_eq!(books.effects, books.undone, "{books:?}");
    }
    let bank = description.of("bank");
    assert_eq!((bank.busy, bank.undo_of_nothing, bank.forgets_keys_after_ms), (409, 200, None));
    assert!(bank.answers["do"].text().contains("\"ID\"") && bank.latency_ms[2] >= 80, "{bank:?}");
    let text = shown::announced(&called);
    for words in ["stock  http://127", "steps probed: charge\n", "steps before a probed one: reserve\n"] {
        assert!(text.contains(words), "{words} in: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_broken_assumption_is_named() {
    use Assumption::{
        AtOnce, ForwardAfterUndo, HungUp, OtherBody, OtherStep, Repeat, UndoOfNothing, UndoTwice, WrongToken,
    };
    for (breaks, broken, settings) in [
        (Breaks::Keys, &[Repeat, AtOnce, HungUp, OtherBody][..], &["memo = true"][..]),
        (Breaks::AnswerToARepeat, &[Repeat, AtOnce, HungUp], &["memo = true", "conflict", "/code == \"twice\""]),
        (Breaks::KeysOfCallersThatLeft, &[HungUp], &[]),
        (Breaks::OtherBodies, &[OtherBody], &[]),
        (Breaks::UndoOfNothing, &[UndoOfNothing], &["/error/code == \"not_found\"", "\"done\""]),
        (Breaks::SecondUndo, &[UndoTwice], &["/code == \"undone\"", "\"done\""]),
        (Breaks::OneUndo, &[UndoTwice], &[]),
        (Breaks::ForwardAfterUndo, &[ForwardAfterUndo], &["memo = true"]),
        (Breaks::KeysOfSteps, &[OtherStep], &[]),
        (Breaks::Tokens, &[WrongToken], &[]),
    ] {
        let (mut probed, mut description, ..) = probed(breaks, "").await;
        // A machine under load may hold an answer back for so long that its time says nothing.
        for _ in 0..3 {
            if with(&probed, Verdict::DoesNotHold) != broken {
                (probed, description, ..) = self::probed(breaks, "").await;
            }
        }
        assert_eq!(with(&probed, Verdict::DoesNotHold), broken, "{breaks:?}: {:#?}", probed.findings);
        assert_eq!(probed.is_broken(), breaks != Breaks::KeysOfSteps, "no other step calls the bank");
        let lines = probed.settings.join("\n");
        settings.iter().for_each(|words| assert!(lines.contains(words), "{breaks:?}: {words} in {lines}"));
        assert_eq!(lines.is_empty(), settings.is_empty(), "{breaks:?}: {lines}");
        let bank = description.of("bank");
        let forgets = bank.forgets_keys_after_ms.is_some();
        assert_eq!(
            (forgets, bank.refuses_forward_after_undo),
            (breaks == Breaks::Keys, breaks != Breaks::ForwardAfterUndo)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_says_nothing_of_a_rule_is_no_verdict_on_it() {
    use Assumption::{AtOnce, ForwardAfterUndo, HungUp, Repeat, UndoOfNothing, UndoTwice};
    let short = "call_timeout = \"300ms\"\n";
    for (breaks, more, broken, unknown, settings) in [
        (Breaks::Silence, short, &[][..], &[Repeat, AtOnce, HungUp][..], &[][..]),
        (Breaks::WordsToARepeat, "", &[Repeat, AtOnce], &[], &["memo = true"]),
        (Breaks::Repeats, "", &[Repeat, AtOnce, HungUp], &[], &["memo = true"]),
        (Breaks::CallersThatLeft, "", &[HungUp], &[], &[]),
        (Breaks::AnswerIds, "", &[], &[], &[]),
        (Breaks::Limit, "", &[], &[], &["rate = "]),
        (Breaks::Callback, "", &[], &[HungUp], &[]),
        (Breaks::UndoPath, "", &[UndoOfNothing, UndoTwice], &[ForwardAfterUndo], &[]),
    ] {
        let is_right =
            |it: &Probed| with(it, Verdict::DoesNotHold) == broken && with(it, Verdict::CannotTell) == unknown;
        let mut all = probed(breaks, more).await;
        // A machine under load may hold an answer back for so long that its time says nothing.
        for _ in 0..3 {
            if !is_right(&all.0) {
                all = probed(breaks, more).await;
            }
        }
        let (probed, description, [_, bank], called) = all;
        assert!(is_right(&probed), "{breaks:?}: {:#?}", probed.findings);
        let lines = probed.settings.join("\n");
        settings.iter().for_each(|words| assert!(lines.contains(words), "{breaks:?}: {words} in {lines}"));
        assert_eq!(lines.is_empty(), settings.is_empty(), "{breaks:?}: {lines}");
        let described = description.of("bank");
        assert_eq!((described.forgets_keys_after_ms, described.undo_of_nothing), (None, 200), "{breaks:?}");
        assert_eq!(described.limit.is_some(), breaks == Breaks::Limit, "{breaks:?}");
        assert_eq!(probed.said.silent > 0, breaks == Breaks::Silence, "{breaks:?}");
        let is_slow = |ms: &u64| *ms >= 300 && breaks == Breaks::Silence;
        assert!(!probed.said.times_ms.iter().any(is_slow), "no answer is no time of an answer");
        let books = bank.books.lock().unwrap();
        assert_eq!(books.callback_urls.is_empty(), breaks != Breaks::Callback);
        assert!(books.callback_urls.iter().all(|url| url.ends_with("https://stepwarden.invalid/callbacks/probe")));
        let is_said = shown::announced(&called).contains("later results are not awaited");
        assert_eq!(is_said, breaks == Breaks::Callback);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memo_answers_for_a_service_without_keys() {
    let (probed, ..) = probed(Breaks::AnswerToARepeat, "memo = true\n").await;
    let covered: Vec<_> = probed.findings.iter().filter(|it| it.covered.is_some()).map(|it| it.assumption).collect();
    assert_eq!(covered, [Assumption::Repeat, Assumption::AtOnce]);
    assert!(probed.is_broken(), "no memo knows what became of a call whose caller left");
}

/// What calls a bank, this often.
fn caller(bank: &Stub, forward: u32) -> Caller {
    let service = || agents::AgentSettings::from(AgentSettings::default());
    let mut caller = Caller::new();
    let http = http_service("bank", &bank.url, service(), &HttpClients::new()).unwrap();
    let counts = plan::Counts { forward, ..plan::Counts::default() };
    caller.allow(&"bank".into(), http, &AgentSettings::default(), counts);
    caller
}

#[tokio::test]
async fn no_call_is_made_that_was_not_announced() {
    let bank = Stub::start(Breaks::Tokens).await;
    let checked = Files::check(&files(&bank, &bank, "")).unwrap();
    let (order, workflow) = Folder::new(&checked, variable).accepted(&ORDER.into(), None).unwrap().unwrap();
    let caller = caller(&bank, 2);
    let mut preview = Preview::new(&order, &workflow);
    preview.suppose(0, &domain::message::Outcome::Done(Json::of(&serde_json::json!({"ID": 1}))));
    let request = |direction| match preview.call(1, direction) {
        Some(domain::machine::Previewed::Request(request)) => *request,
        other => panic!("{other:?}"),
    };
    let [forward, undo] = [Direction::Forward, Direction::Undo].map(request);
    let of_stock = domain::message::Request { agent: "stock".into(), ..forward.clone() };
    let mut answers = Vec::new();
    for request in [&forward, &forward, &forward, &undo, &of_stock] {
        answers.push(caller.call(request, agents::Proof::Own).await.status());
    }
    assert_eq!(answers, [Some(200), Some(200), None, None, None]);
    assert_eq!(bank.books.lock().unwrap().calls, [2, 0]);
}

#[tokio::test]
async fn a_service_that_is_away_is_not_probed_and_nothing_is_said_of_it() {
    let [stock, bank] = [Stub::start(Breaks::Nothing).await, Stub::start(Breaks::Nothing).await];
    let mut files = files(&stock, &bank, "");
    files[0].1 = files[0].1.replace(&bank.url, "http://127.0.0.1:1");
    let checked = Files::check(&files).unwrap();
    let probe = Probe::of(&checked, &ORDER.into(), &args(), variable).unwrap();
    let called = probe.called().unwrap();
    let caller = probe.caller(&called, variable).await.unwrap();
    let (probed, description) = probe.made(&caller, &files).await.unwrap();
    let [one] = probed.as_slice() else { panic!("one agent") };
    assert!(one.unseen.as_ref().is_some_and(|why| why.contains("127.0.0.1:1")), "{:?}", one.unseen);
    assert!(one.findings.is_empty() && description == Description::default());
    let books = stock.books.lock().unwrap();
    assert_eq!((books.effects, books.undone), (1, 1), "what came before is taken back");
}

#[test]
fn what_cannot_be_probed_is_said_before_a_call() {
    let checked = |settings: &str| {
        let files = [(DEPLOYMENT_FILE, settings), ("workflows/shop-1.toml", WORKFLOW)];
        Files::check(&files.map(|(name, text)| (name.to_owned(), text.to_owned()))).unwrap()
    };
    let own = "default = \"shop\"\n[agents.stock]\nqueue = \"own\"\n[agents.bank]\nurl = \"https://b.example\"\n";
    for (settings, args, words) in [
        ("default = \"shop\"\n[agents.stock]\n[agents.bank]", args(), "agent bank has no url"),
        (own, args(), "agent stock has a queue of its own"),
        (own, ProbeArgs { agents: vec!["stock".to_owned()], ..args() }, "stock is no step, or agent of a step"),
        (own, ProbeArgs { steps: vec!["chrge".to_owned()], ..args() }, "These are: charge (bank)"),
    ] {
        let checked = checked(settings);
        let probe = Probe::of(&checked, &ORDER.into(), &args, variable);
        let said = match probe.and_then(|probe| probe.called().map(drop)) {
            Ok(()) => panic!("{words}"),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(words), "{said}");
    }
}
