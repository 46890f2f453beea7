//! The caller of a request: a name and roles, by the authentication of the host; and the calls that each role may make.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use domain::message::Action;
use domain::order::{Order, SCHEDULE_SUBMITTER};
use domain::task::Task;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::route::{Route, Verb};

/// The name of a caller that is not known, as the host gives it too.
const ANONYMOUS: &str = "anonymous";

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Posts orders, and reads its own.
    Application,
    /// Reads everything.
    Viewer,
    /// Reads everything, and acts on orders, jobs and services.
    Operator,
    /// Reads everything, and decides on approvals.
    Approver,
    /// As an operator, and applies workflows and settings.
    Administrator,
}

/// The text names no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no role. Roles are: application, viewer, operator, approver, administrator")]
pub struct NotARole;

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    name: Arc<str>,
    roles: Roles,
    /// The reply channels that its orders may name. `None`: all that are registered.
    channels: Option<Arc<[Arc<str>]>>,
}

/// A set of roles.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Roles(u8);

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Application, Self::Viewer, Self::Operator, Self::Approver, Self::Administrator];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Approver => "approver",
            Self::Administrator => "administrator",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl FromStr for Role {
    type Err = NotARole;

    fn from_str(text: &str) -> Result<Self, NotARole> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or(NotARole)
    }
}

impl Roles {
    const NONE: Self = Self(0);
    const ALL: Self = Self::of(&Role::ALL);
    /// The calls that need one of these take it from anybody who may read everything.
    const READERS: Self = Self::of(&[Role::Viewer, Role::Operator, Role::Approver, Role::Administrator]);
    const OPERATORS: Self = Self::of(&[Role::Operator, Role::Administrator]);

    const fn of(roles: &[Role]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < roles.len() {
            bits |= roles[at].bit();
            at += 1;
        }
        Self(bits)
    }

    const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn and(self, role: Role) -> Self {
        Self(self.0 | role.bit())
    }
}

impl fmt::Debug for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_string())
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Role::ALL.into_iter().filter(|role| self.0 & role.bit() != 0).map(Role::name);
        f.write_str(&names.collect::<Vec<_>>().join(" or "))
    }
}

impl Caller {
    /// A caller that may do everything here: the host has no authentication, or its gateway decides.
    #[must_use]
    pub fn unrestricted(name: impl Into<Arc<str>>) -> Self {
        Self { name: own_name(name.into()), roles: Roles::ALL, channels: None }
    }

    /// A caller with these roles, whose orders may name these reply channels; `None` stands for all.
    #[must_use]
    pub fn with(name: impl Into<Arc<str>>, roles: &[Role], channels: Option<Arc<[Arc<str>]>>) -> Self {
        Self { name: own_name(name.into()), roles: Roles::of(roles), channels }
    }

    /// A caller whose token has these scopes. With `prefix` a scope `{prefix}{role}` is a role, and scopes
    /// `{prefix}channel:{name}` are the only reply channels that its orders may name. Without `prefix` the gateway
    /// decides.
    pub(crate) fn by_scopes(name: impl Into<Arc<str>>, scopes: &[String], prefix: Option<&str>) -> Self {
        let Some(prefix) = prefix else { return Self::unrestricted(name) };
        let own = || scopes.iter().filter_map(|scope| scope.strip_prefix(prefix));
        let roles: Vec<Role> = own().filter_map(|scope| scope.parse().ok()).collect();
        let channels: Arc<[Arc<str>]> =
            own().filter_map(|scope| scope.strip_prefix("channel:")).map(Arc::from).collect();
        Self::with(name, &roles, (!channels.is_empty()).then_some(channels))
    }

    /// Somebody who is not known. Only what is open to all is answered.
    #[must_use]
    pub fn unknown() -> Self {
        Self { name: ANONYMOUS.into(), roles: Roles::NONE, channels: None }
    }

    /// Its name: the submitter of its orders.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Checks that one of its roles may make this call.
    pub(crate) fn check(&self, route: Route<'_>, verb: Verb) -> Result<(), Problem> {
        let Some(needed) = needed(route, verb) else { return Ok(()) };
        if self.roles.meets(needed) {
            Ok(())
        } else if *self.name == *ANONYMOUS {
            Err(Problem::Unauthenticated)
        } else {
            Err(Problem::Forbidden { needed: needed.to_string() })
        }
    }

    /// Whether it may read the order of this task.
    pub(crate) fn may_read(&self, task: &Task) -> bool {
        self.reads_all() || task.submitter().is_some_and(|submitter| *submitter == self.name)
    }

    /// The same, by the order itself.
    pub(crate) fn may_read_order(&self, order: &Order) -> bool {
        self.reads_all() || order.submitter == self.name
    }

    /// Whether its orders may name this reply channel.
    pub(crate) fn may_use(&self, channel: &str) -> bool {
        self.channels.as_ref().is_none_or(|channels| channels.iter().any(|own| **own == *channel))
    }

    /// Its name, if it sees its own orders alone.
    pub(crate) fn alone(&self) -> Option<&Arc<str>> {
        (!self.reads_all()).then_some(&self.name)
    }

    /// Whether it reads settings as they were applied.
    pub(crate) const fn may_configure(&self) -> bool {
        self.roles.meets(Roles::of(&[Role::Administrator]))
    }

    const fn reads_all(&self) -> bool {
        self.roles.meets(Roles::READERS)
    }
}

/// The name of a caller. The subject of a token may have any characters, but stands for no schedule (rule 48), and two
/// subjects never have one name.
fn own_name(name: Arc<str>) -> Arc<str> {
    let of_schedule = name.trim_start_matches(OF_CALLER).starts_with(SCHEDULE_SUBMITTER);
    if of_schedule { format!("{OF_CALLER}{name}").into() } else { name }
}

/// Stands before the name of a caller that would be that of a schedule.
const OF_CALLER: &str = "caller/";

/// The roles of which one must be the caller's. `None`: the call is open to all.
const fn needed(route: Route<'_>, verb: Verb) -> Option<Roles> {
    Some(match (route, verb) {
        (
            Route::Health
            | Route::Ready
            | Route::Problem(_)
            | Route::Console(_)
            | Route::Callback(_)
            | Route::Heartbeat(_),
            _,
        ) => return None,
        (Route::Orders, Verb::Post) => Roles::of(&[Role::Application]),
        (Route::Orders | Route::Order(_) | Route::Document(_) | Route::Contract, _) => {
            Roles::READERS.and(Role::Application)
        }
        (Route::Command(_, Action::Approve | Action::Reject), _) => Roles::of(&[Role::Approver]),
        (Route::Command(_, Action::Erase) | Route::Choose(_) | Route::Retire(..), _)
        | (Route::Configuration, Verb::Post) => Roles::of(&[Role::Administrator]),
        (Route::Command(..) | Route::Again(_) | Route::JobCommand(..) | Route::AcceptRejections(_), _)
        | (Route::Jobs, Verb::Post) => Roles::OPERATORS,
        (
            Route::Jobs
            | Route::Job(_)
            | Route::DeadLetters
            | Route::Alerts
            | Route::Services
            | Route::Overview
            | Route::Numbers
            | Route::Metrics
            | Route::Leases
            | Route::Schedules
            | Route::Workflows
            | Route::Workflow(..)
            | Route::Try(..)
            | Route::Configuration,
            _,
        ) => Roles::READERS,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use bytes::Bytes;
    use domain::task::ProcessState;
    use serde_json::Value;

    use super::*;
    use crate::testing::{CALLER, CHANNEL, Fake, ORDER, task_in};

    /// The calls that each role may make, by the table of the documents.
    fn table() -> BTreeMap<(String, String), Vec<Role>> {
        let text = include_str!("../README.md").split("## Roles").nth(1).unwrap();
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        let mut calls = BTreeMap::new();
        for row in rows.take_while(|row| row.matches(" |").count() == 6) {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let roles = Role::ALL.into_iter().zip(&cells[1..]).filter(|(_, cell)| !cell.is_empty());
            let roles: Vec<Role> = roles.map(|(role, _)| role).collect();
            let names: Vec<&str> = cells[0].split('`').skip(1).step_by(2).collect();
            let (method, first) = names[0].split_once(' ').unwrap();
            for path in std::iter::once(first).chain(names[1..].iter().copied()) {
                assert_eq!(calls.insert((method.to_owned(), path.to_owned()), roles.clone()), None, "{path}");
            }
        }
        calls
    }

    const PREFIX: &str = "stepwarden/";

    fn by(roles: &[Role]) -> Caller {
        Caller::with("somebody", roles, None)
    }

    fn by_name(name: &str) -> Caller {
        Caller::with(name, &[Role::Application], None)
    }

    fn scopes(scopes: &[&str]) -> Vec<String> {
        scopes.iter().map(|scope| (*scope).to_owned()).collect()
    }

    /// The same, as the scopes of a token name them.
    fn by_token(roles: &[Role]) -> Caller {
        let roles = roles.iter().map(|role| format!("{PREFIX}{}", role.name()));
        Caller::by_scopes("somebody", &roles.chain(scopes(&["openid"])).collect::<Vec<_>>(), Some(PREFIX))
    }

    #[test]
    fn rule_42_each_role_may_make_the_calls_of_the_table_in_the_documents_and_no_other() {
        let contract: Value = serde_json::from_str(include_str!("../../../infra/contracts/openapi.json")).unwrap();
        let mut table = table();
        let fake = Fake::default();
        for (path, item) in contract["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters") {
                let method = method.to_uppercase();
                let url = path.replace("{id}", "0193-x").replace("{name}", "order-not-found").replace("{token}", "x");
                let url = url.replace("{version}", "1");
                let status = |caller: &Caller| {
                    let answer = fake.call_by(caller, &method, &url, &[], Bytes::new());
                    let is_refused = answer.body["type"] == "/problems/unauthenticated" || answer.status == 403;
                    if is_refused { Some(answer.status) } else { None }
                };
                let allowed = table.remove(&(method.clone(), path.clone()));
                assert_eq!(operation["security"] != serde_json::json!([]), allowed.is_some(), "{method} {path}");
                let unknown = allowed.as_ref().map(|_| 401);
                assert_eq!(status(&Caller::unknown()), unknown, "{method} {path}");
                assert_eq!(status(&by_token(&[])), allowed.as_ref().map(|_| 403), "{method} {path}");
                for role in Role::ALL {
                    let is_allowed = allowed.as_ref().is_none_or(|roles| roles.contains(&role));
                    let expected = (!is_allowed).then_some(403);
                    assert_eq!(status(&by(&[role])), expected, "{method} {path} as {}", role.name());
                    assert_eq!(status(&by_token(&[role])), expected, "{method} {path} as {}", role.name());
                }
                assert_eq!(status(&by(&Role::ALL)), None, "{method} {path}");
            }
        }
        assert!(table.is_empty(), "the contract has no {table:?}");
    }

    #[test]
    fn rule_42_only_scopes_with_the_prefix_are_roles_and_without_one_the_gateway_decides() {
        for scope in
            ["viewer", "other/viewer", "stepwarden/", "stepwarden/viewers", "stepwarden/Viewer", "x stepwarden/viewer"]
        {
            assert_eq!(
                Caller::by_scopes("a", &scopes(&[scope]), Some(PREFIX)),
                Caller::with("a", &[], None),
                "{scope}"
            );
        }
        let two = scopes(&["stepwarden/viewer", "email", "stepwarden/operator"]);
        let expected = Caller::with("a", &[Role::Viewer, Role::Operator], None);
        assert_eq!(Caller::by_scopes("a", &two, Some(PREFIX)), expected);
        assert_eq!(Caller::by_scopes("a", &scopes(&["stepwarden/operate"]), None), Caller::unrestricted("a"));
        assert_eq!(Caller::by_scopes("a", &[], None), Caller::unrestricted("a"));
    }

    #[test]
    fn an_unknown_caller_learns_how_to_be_known_and_a_known_one_which_roles_there_are() {
        let fake = Fake::default();
        let unknown = fake.call_by(&Caller::unknown(), "GET", "/overview", &[], Bytes::new());
        unknown.is_problem(401, "unauthenticated");
        assert_eq!(unknown.header("www-authenticate"), Some("Bearer"));
        let viewer = fake.call_by(&by(&[Role::Viewer]), "POST", "/bulk", &[], Bytes::new());
        viewer.is_problem(403, "forbidden");
        assert_eq!(viewer.body["detail"], "this needs the role operator or administrator");
    }

    #[test]
    fn rule_42_an_application_reads_and_finds_its_own_orders_only() {
        let fake = Fake::default();
        let order_id = fake.stores(task_in("a", ProcessState::Error));
        let (own, other) = (Caller::with(CALLER, &[Role::Application], None), by(&[Role::Application]));
        let get = |caller: &Caller, path: &str| fake.call_by(caller, "GET", path, &[], Bytes::new());
        let paths = [format!("/orders/{order_id}"), format!("/orders/{order_id}/document")];
        for path in &paths {
            assert_eq!(get(&own, path).status, 200, "{path}");
            get(&other, path).is_problem(404, "order-not-found");
            assert_eq!(get(&by(&[Role::Viewer]), path).status, 200, "{path}");
            assert_eq!(get(&by(&[Role::Application, Role::Viewer]), path).status, 200, "{path}");
        }
        for list in ["/orders", "/orders?state=Error", "/orders?with=index", "/orders?step=reserve-inventory"] {
            let count = |caller: &Caller| get(caller, list).body["Orders"].as_array().unwrap().len();
            let (mine, others, all) = (count(&own), count(&other), count(&by(&[Role::Viewer])));
            assert_eq!((mine, others), (all, 0), "{list}");
        }
        let found = get(&own, "/orders").body["Orders"].as_array().unwrap().len();
        assert_eq!(found, 1);
    }

    #[test]
    fn rule_42_an_application_learns_nothing_of_the_orders_of_others_from_a_search_or_a_wait() {
        let (fake, empty) = (Fake::default(), Fake::default());
        let order_id = fake.stores(task_in("a", ProcessState::Error));
        let other = by(&[Role::Application]);
        for list in [
            "/orders",
            "/orders?limit=1",
            "/orders?correlation=cart-7",
            "/orders?value=mug",
            "/orders?state=Error&limit=1",
            "/orders?since=2020-01-01T00:00:00Z",
        ] {
            let get = |fake: &Fake| fake.call_by(&other, "GET", list, &[], Bytes::new()).text;
            assert_eq!(get(&fake), get(&empty), "{list}");
        }
        let path = format!("/orders/{order_id}");
        let waits = [("prefer", "wait=20")];
        fake.call_by(&other, "GET", &path, &waits, Bytes::new()).is_problem(404, "order-not-found");
        // Those of others do not fill a page.
        let own = fake.stores(Task { order_id: order_id.again(), ..task_in("a", ProcessState::Error) });
        let mut newest = task_in("a", ProcessState::Error);
        (newest.order_id, newest.history[0].who) = (own.again(), other.name().clone());
        fake.stores(newest);
        let mine = Caller::with(CALLER, &[Role::Application], None);
        let page = fake.call_by(&mine, "GET", "/orders?limit=2", &[], Bytes::new());
        assert_eq!(page.body["Orders"].as_array().unwrap().len(), 2, "{}", page.text);
    }

    #[test]
    fn rule_48_no_caller_has_the_name_of_a_schedule() {
        for caller in [
            Caller::unrestricted("schedule/renewals"),
            by_name("schedule/renewals"),
            Caller::by_scopes("schedule/renewals", &[], Some(PREFIX)),
        ] {
            assert_eq!(&**caller.name(), "caller/schedule/renewals");
        }
        for (subject, name) in [
            ("schedules", "schedules"),
            ("caller/shop", "caller/shop"),
            ("caller/schedule/renewals", "caller/caller/schedule/renewals"),
            ("caller/caller/schedule/renewals", "caller/caller/caller/schedule/renewals"),
        ] {
            assert_eq!(&**by_name(subject).name(), name, "two subjects have one name");
        }
        let fake = Fake::default();
        fake.call_by(&by_name("schedule/renewals"), "POST", "/orders", &[], Bytes::from(ORDER));
        assert_eq!(&*fake.submitted()[0].submitter, "caller/schedule/renewals");
    }

    #[test]
    fn a_token_may_be_limited_to_some_reply_channels() {
        let fake = Fake::default();
        let channels = |channels: &[&str]| Some(channels.iter().map(|name| Arc::from(*name)).collect());
        let body = Bytes::from(format!("{{\"ReplyChannel\":\"{CHANNEL}\",{}", &ORDER[1..]));
        let post = |channels| {
            let caller = Caller::with("shop", &[Role::Application], channels);
            fake.call_by(&caller, "POST", "/orders", &[], body.clone())
        };
        assert_eq!(post(channels(&[CHANNEL])).status, 202);
        assert_eq!(post(None).status, 202);
        post(channels(&["another"])).names(400, "invalid-field", "ReplyChannel");
        let by_scope = |channel: &str| {
            let own = scopes(&["stepwarden/application", &format!("stepwarden/channel:{channel}")]);
            fake.call_by(&Caller::by_scopes("shop", &own, Some(PREFIX)), "POST", "/orders", &[], body.clone())
        };
        assert_eq!(by_scope(CHANNEL).status, 202);
        by_scope("another").names(400, "invalid-field", "ReplyChannel");
    }

    #[test]
    fn a_role_is_written_as_its_name() {
        assert!(Role::ALL.into_iter().all(|role| role.name().parse() == Ok(role)));
        let names: BTreeSet<&str> = Role::ALL.into_iter().map(Role::name).collect();
        let fault = "root".parse::<Role>().unwrap_err().to_string();
        assert!(names.iter().all(|name| fault.contains(name)), "{fault}");
    }
}
