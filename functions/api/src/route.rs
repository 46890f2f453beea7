//! The routes of the API.

use domain::message::Action;
use http::Method;

use crate::console::{self, File};
use crate::problem_kind::Kind;

/// An operator's actions on a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobAction {
    /// Carry it out.
    Start,
    /// Begin no more orders.
    Cancel,
}

/// A known path. Ids are as the caller wrote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// `/orders`
    Orders,
    /// `/orders/{id}`
    Order(&'a str),
    /// `/orders/{id}/document`
    Document(&'a str),
    /// `/orders/{id}/resubmit`, `/cancel`, and the other actions of an operator
    Command(&'a str, Action),
    /// `/orders/{id}/again`
    Again(&'a str),
    /// `/callbacks/{token}`
    Callback(&'a str),
    /// `/callbacks/{token}/heartbeat`
    Heartbeat(&'a str),
    /// `/bulk`
    Jobs,
    /// `/bulk/{id}`
    Job(&'a str),
    /// `/bulk/{id}/start` and `/cancel`
    JobCommand(&'a str, JobAction),
    /// `/dead-letters`
    DeadLetters,
    /// `/alerts`
    Alerts,
    /// `/services`
    Services,
    /// `/services/{name}/accept-rejections`
    AcceptRejections(&'a str),
    /// `/overview`
    Overview,
    /// `/numbers`
    Numbers,
    /// `/metrics`
    Metrics,
    /// `/leases`
    Leases,
    /// `/schedules`
    Schedules,
    /// `/workflows`
    Workflows,
    /// `/workflows/{name}/{version}`
    Workflow(&'a str, &'a str),
    /// `/workflows/{name}/{version}/retire`
    Retire(&'a str, &'a str),
    /// `/workflows/{name}/{version}/try`
    Try(&'a str, &'a str),
    /// `/workflows/{name}/choose`
    Choose(&'a str),
    /// `/configuration`
    Configuration,
    /// `/openapi.json`
    Contract,
    /// `/problems/{name}`
    Problem(Kind),
    /// `/health`
    Health,
    /// `/ready`
    Ready,
    /// `/`, and the files of its page
    Console(&'static File),
}

/// The method of a request, by its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    /// As `Get`, without the body.
    Head,
    Post,
    /// A method that no path takes.
    Other,
}

impl<'a> Route<'a> {
    /// Whether a page of another site may ask for it as often as it likes: it costs nothing, and has nothing of an order.
    pub(crate) const fn is_cheap(self) -> bool {
        matches!(self, Self::Health | Self::Ready)
    }

    /// Whether a person opens it by a link on a page of another site.
    pub(crate) fn is_page(self) -> bool {
        if let Self::Console(file) = self { file.is_page() } else { matches!(self, Self::Problem(_)) }
    }

    /// The route of a path. A trailing slash makes another path.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        if let Some(file) = console::file(path) {
            return Some(Self::Console(file));
        }
        let mut segments = path.strip_prefix('/')?.splitn(4, '/');
        match [segments.next(), segments.next(), segments.next(), segments.next()] {
            [Some("orders"), None, None, None] => Some(Self::Orders),
            [Some("callbacks"), Some(token), None, None] => Some(Self::Callback(token)),
            [Some("callbacks"), Some(token), Some("heartbeat"), None] => Some(Self::Heartbeat(token)),
            [Some("bulk"), None, None, None] => Some(Self::Jobs),
            [Some("dead-letters"), None, None, None] => Some(Self::DeadLetters),
            [Some("alerts"), None, None, None] => Some(Self::Alerts),
            [Some("services"), None, None, None] => Some(Self::Services),
            [Some("services"), Some(name), Some("accept-rejections"), None] if !name.is_empty() => {
                Some(Self::AcceptRejections(name))
            }
            [Some("overview"), None, None, None] => Some(Self::Overview),
            [Some("numbers"), None, None, None] => Some(Self::Numbers),
            [Some("metrics"), None, None, None] => Some(Self::Metrics),
            [Some("leases"), None, None, None] => Some(Self::Leases),
            [Some("schedules"), None, None, None] => Some(Self::Schedules),
            [Some("workflows"), None, None, None] => Some(Self::Workflows),
            [Some("workflows"), Some(name), Some("choose"), None] => Some(Self::Choose(name)),
            [Some("workflows"), Some(name), Some(version), None] => Some(Self::Workflow(name, version)),
            [Some("workflows"), Some(name), Some(version), Some("retire")] => Some(Self::Retire(name, version)),
            [Some("workflows"), Some(name), Some(version), Some("try")] => Some(Self::Try(name, version)),
            [Some("configuration"), None, None, None] => Some(Self::Configuration),
            [Some("openapi.json"), None, None, None] => Some(Self::Contract),
            [Some("problems"), Some(name), None, None] => Kind::named(name).map(Self::Problem),
            [Some("health"), None, None, None] => Some(Self::Health),
            [Some("ready"), None, None, None] => Some(Self::Ready),
            [Some("orders"), Some(id), None, None] if !id.is_empty() => Some(Self::Order(id)),
            [Some("orders"), Some(id), Some("document"), None] if !id.is_empty() => Some(Self::Document(id)),
            [Some("orders"), Some(id), Some("again"), None] if !id.is_empty() => Some(Self::Again(id)),
            [Some("orders"), Some(id), Some(word), None] if !id.is_empty() => {
                action(word).map(|action| Self::Command(id, action))
            }
            [Some("bulk"), Some(id), None, None] if !id.is_empty() => Some(Self::Job(id)),
            [Some("bulk"), Some(id), Some(word), None] if !id.is_empty() => {
                job_action(word).map(|action| Self::JobCommand(id, action))
            }
            _ => None,
        }
    }

    /// The methods that it takes, as the header `Allow` lists them.
    pub(crate) const fn allow(self) -> &'static str {
        match self {
            Self::Orders | Self::Jobs | Self::Configuration => "GET, HEAD, POST",
            Self::Order(_)
            | Self::Document(_)
            | Self::Job(_)
            | Self::DeadLetters
            | Self::Alerts
            | Self::Services
            | Self::Overview
            | Self::Numbers
            | Self::Metrics
            | Self::Leases
            | Self::Schedules
            | Self::Workflows
            | Self::Workflow(..)
            | Self::Contract
            | Self::Problem(_)
            | Self::Health
            | Self::Ready
            | Self::Console(_) => "GET, HEAD",
            Self::Command(..)
            | Self::Again(_)
            | Self::Callback(_)
            | Self::Heartbeat(_)
            | Self::JobCommand(..)
            | Self::AcceptRejections(_)
            | Self::Choose(_)
            | Self::Retire(..)
            | Self::Try(..) => "POST",
        }
    }
}

impl Verb {
    /// The verb of a method.
    pub(crate) fn of(method: &Method) -> Self {
        match *method {
            Method::GET => Self::Get,
            Method::HEAD => Self::Head,
            Method::POST => Self::Post,
            _ => Self::Other,
        }
    }
}

fn action(word: &str) -> Option<Action> {
    match word {
        "resubmit" => Some(Action::Resubmit),
        "cancel" => Some(Action::Cancel),
        "pause" => Some(Action::Pause),
        "resume" => Some(Action::Resume),
        "settle" => Some(Action::Settle),
        "note" => Some(Action::Note),
        "close" => Some(Action::Close),
        "approve" => Some(Action::Approve),
        "reject" => Some(Action::Reject),
        "erase" => Some(Action::Erase),
        _ => None,
    }
}

fn job_action(word: &str) -> Option<JobAction> {
    match word {
        "start" => Some(JobAction::Start),
        "cancel" => Some(JobAction::Cancel),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_the_design_are_routes() {
        for (path, route) in [
            ("/orders", Route::Orders),
            ("/orders/abc", Route::Order("abc")),
            ("/orders/abc/document", Route::Document("abc")),
            ("/orders/abc/resubmit", Route::Command("abc", Action::Resubmit)),
            ("/orders/abc/cancel", Route::Command("abc", Action::Cancel)),
            ("/orders/abc/pause", Route::Command("abc", Action::Pause)),
            ("/orders/abc/resume", Route::Command("abc", Action::Resume)),
            ("/orders/abc/settle", Route::Command("abc", Action::Settle)),
            ("/orders/abc/note", Route::Command("abc", Action::Note)),
            ("/orders/abc/close", Route::Command("abc", Action::Close)),
            ("/orders/abc/erase", Route::Command("abc", Action::Erase)),
            ("/orders/abc/again", Route::Again("abc")),
            ("/callbacks/t", Route::Callback("t")),
            ("/callbacks/t/heartbeat", Route::Heartbeat("t")),
            ("/bulk", Route::Jobs),
            ("/bulk/j1", Route::Job("j1")),
            ("/bulk/j1/start", Route::JobCommand("j1", JobAction::Start)),
            ("/bulk/j1/cancel", Route::JobCommand("j1", JobAction::Cancel)),
            ("/dead-letters", Route::DeadLetters),
            ("/alerts", Route::Alerts),
            ("/services", Route::Services),
            ("/services/payment/accept-rejections", Route::AcceptRejections("payment")),
            ("/overview", Route::Overview),
            ("/leases", Route::Leases),
            ("/schedules", Route::Schedules),
            ("/workflows", Route::Workflows),
            ("/workflows/shop/2", Route::Workflow("shop", "2")),
            ("/workflows/shop/2/try", Route::Try("shop", "2")),
            ("/openapi.json", Route::Contract),
            ("/problems/order-not-found", Route::Problem(Kind::NoOrder)),
            ("/health", Route::Health),
            ("/ready", Route::Ready),
        ] {
            assert_eq!(Route::of(path), Some(route), "{path}");
        }
    }

    #[test]
    fn nothing_else_is_one() {
        for path in [
            "",
            "/console/",
            "*",
            "orders",
            "/orders/",
            "//orders",
            "/orders//cancel",
            "/orders/a/cancel/",
            "/orders/a/b",
            "/orders/a/start",
            "/bulk/",
            "/bulk//start",
            "/bulk/j/pause",
            "/dead-letters/m",
            "/services/payment",
            "/services//accept-rejections",
        ] {
            assert_eq!(Route::of(path), None, "{path}");
        }
    }
}
