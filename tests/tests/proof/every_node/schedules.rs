//! The supervisor's looks at schedules.

use domain::definition::{Choice, Definition, Deployment, installation};
use domain::id::OrderId;
use domain::ports::{Commit, Environment, Records, Seen};
use domain::redaction::Redaction;
use domain::schedule::{Schedule, ScheduleRecord};
use domain::time::Timestamp;
use supervisor::Settings;
use tests::world::{End, PATIENT, World, drive, now};

use super::node::{Node, Scene, with};

const HANDLER: &str = "schedules";
const HOUR_MS: u64 = 3_600_000;
const SETTINGS: &str = "[[schedule]]\nname = \"s\"\nevery = \"1h\"\nstart = 2000-01-01T00:00:00Z\n";
/// The version that is applied, beside the compiled one.
const APPLIED: u32 = 2;

/// One look. A failed look is repeated by the next one.
fn look(world: &World) {
    let (instance, settings) = (world.instance("supervisor"), Settings::default());
    let redaction = Redaction::default();
    let look = supervisor::schedules(&world.ports, &instance, &settings, &redaction);
    if let Some(Err(error)) = drive(&world.memory, &world.ports, look) {
        assert!(error.to_string().ends_with("unavailable"), "{error}");
    }
}

/// Three due times after this schedule was applied, with the workflow as an applied version.
fn due(schedule: &str) -> (World, Vec<OrderId>) {
    let world = with(PATIENT);
    let (memory, begin) = (&world.memory, world.memory.now());
    let text = PATIENT.replace("version = 1", &format!("version = {APPLIED}"));
    let definition = Definition {
        key: format!("order/{APPLIED}").into(),
        version: 1,
        hash: Definition::hash_of(&text).into(),
        text: text.into(),
        applied_at: begin,
        applied_by: "ann".into(),
        retired_at: None,
    };
    assert_eq!(now(memory.put(Seen::nothing(begin), &definition)).expect("a store"), Commit::Committed);
    let settings = format!("{SETTINGS}{schedule}");
    let deployment = Deployment {
        version: 1,
        default: "order".into(),
        workflows: [("order".into(), Choice::all(APPLIED))].into(),
        highest: [].into(),
        settings: settings.as_str().into(),
        schedules: [("s".into(), begin)].into(),
        callback_keys: Vec::new(),
        applied_at: begin,
        applied_by: "ann".into(),
        of_start: false,
    };
    assert_eq!(now(memory.put(Seen::nothing(begin), &deployment)).expect("a store"), Commit::Committed);
    let part = now(installation(memory)).expect("a store");
    memory.advance(2 * HOUR_MS);
    let schedule = Schedule::all(&settings).remove(0);
    let due = std::iter::successors(schedule.timing.next(begin.minus_ms(1)), |at| schedule.timing.next(*at));
    let due: Vec<Timestamp> = due.take_while(|at| *at <= memory.now()).collect();
    let order = |at: &Timestamp| schedule.order(&part, *at, *at).map(|given| given.order.order_id);
    (world, due.iter().filter_map(|at| order(at).ok()).collect())
}

/// A scene of one look. After it, the next looks do the rest, and the orders run to their ends.
fn looked(world: World) -> Scene {
    Scene::asked(world, |world| {
        look(world);
        true
    })
    .then(|world| {
        look(world);
        look(world);
    })
}

fn record(world: &World) -> ScheduleRecord {
    now(world.memory.get("s")).expect("a store").expect("the mark")
}

pub(crate) fn nodes() -> Vec<Node> {
    let node = |what, scene| Node { handler: HANDLER, what, scene };
    vec![
        node("due times were missed, and all are posted", || {
            let (world, orders) = due("catch_up = \"all\"\norder = { Item = \"mug\" }");
            let last = *orders.last().expect("an order");
            let scene = orders.iter().fold(looked(world), |scene, &order_id| scene.ends(order_id, End::Processed));
            scene.checked(move |world| {
                assert_eq!(record(world).posted.expect("an order").order_id, last);
                assert_eq!(world.memory.orders().len(), orders.len());
            })
        }),
        node("the document is refused: the due times stay open", || {
            let (world, _) = due("catch_up = \"all\"\norder = { Priority = \"low\" }");
            looked(world).checked(|world| {
                assert!(record(world).refused.is_some() && world.memory.orders().is_empty());
            })
        }),
        node("a schedule that is gone refuses nothing any more", || {
            let (world, _) = due("order = { Priority = \"low\" }");
            look(&world);
            let deployment: Deployment = now(world.memory.get(Deployment::KEY)).expect("a store").expect("it");
            let seen = Seen::version(1, world.memory.now());
            let gone = Deployment { version: 2, settings: "".into(), ..deployment };
            assert_eq!(now(world.memory.put(seen, &gone)).expect("a store"), Commit::Committed);
            looked(world).checked(|world| assert_eq!(record(world).refused, None))
        }),
    ]
}
