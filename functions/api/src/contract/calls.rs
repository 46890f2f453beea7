//! What no type says of the operations: their names, words, parameters and answers.

use wire::{
    AlertList, Callback, CalledBack, Choose, Command, Configuration, Configure, Configured, DeadLetter, DeadLetterList,
    Decision, Definition, Health, Job, JobList, LeaseList, Note, Numbers, Order, OrderList, Overview, Plan, Queued,
    ScheduleList, Service, ServiceList, Settle, Task, Tried, Try, WorkflowList,
};

use super::call::Tag::{About, Operating, Orders, Services, Watching};
use super::call::{Call, PROBLEM_PAGE, get, of, post};
use super::parts::{self, shared};

/// All operations, each with its path. The console is a page for people, and not part of the contract.
pub(super) fn calls() -> Vec<Call> {
    vec![
        get("/orders", "listOrders", Orders, "List or search orders, newest first")
            .says(
                "A page of orders. `state` uses an index. On AWS, Pending, Processing and Compensating share one \
                     index, and Processed, Compensated and Closed are searched among all orders. `correlation` uses \
                     an index. So does `field` with `value`, if the workflow declares the field with `index`: the \
                     first pages are from the index, the next ones are of orders that are not in it. The other \
                     filters apply to the listed orders. A call reads about 1,000 tasks or 200 documents at most. So \
                     a page of a search may be short or empty, and still have a NextCursor. A search with `since` \
                     ends when only orders from more than an hour before it are left.",
            )
            .takes(parts::filters().into_iter().chain([shared("Limit"), shared("Cursor")]))
            .gives(200, "A page.", of::<OrderList<Task<'static>>>),
        post("/orders", "postOrder", Orders, "Post an order")
            .says("Answers when the order is stored durably.")
            .takes([shared("IdempotencyKey"), shared("Prefer")])
            .reads(parts::document)
            .makes_an_order()
            .refuses(["Unprocessable", "TooManyOrders"]),
        get("/orders/{id}", "getOrder", Orders, "Read an order")
            .takes([shared("OrderID"), shared("Prefer"), shared("IfNoneMatch")])
            .gives(200, "The order.", of::<Task<'static>>),
        get("/orders/{id}/document", "getDocument", Orders, "Read an order's document")
            .says(
                "Values of redacted members are shown as \"[redacted]\", at any depth. Redaction covers documents \
                     and outputs. The codes and messages of services' errors are shown unchanged.",
            )
            .takes([shared("OrderID")])
            .gives(200, "The order, as accepted.", of::<Order<'static>>),
        command(
            "/orders/{id}/resubmit",
            "resubmitOrder",
            "Resubmit an order that is in Error, or has a step that waits longer",
        )
        .says(
            "The failed step becomes Pending again, with no failures counted. 202 means that the command is \
                 queued; the scheduler decides.",
        )
        .reads(of::<Command<'static>>),
        command("/orders/{id}/cancel", "cancelOrder", "Cancel an order")
            .says("Compensates an unfinished order. 202 means that the command is queued; the scheduler decides.")
            .reads(of::<Command<'static>>),
        command("/orders/{id}/pause", "pauseOrder", "Pause an order")
            .says(
                "Attempts in flight end; no new step starts. 202 means that the command is queued; the scheduler \
                 decides.",
            )
            .reads(of::<Command<'static>>),
        command("/orders/{id}/resume", "resumeOrder", "Resume a paused order")
            .says("202 means that the command is queued; the scheduler decides.")
            .reads(of::<Command<'static>>),
        command("/orders/{id}/settle", "settleStep", "Settle a step by hand")
            .says(
                "An operator has mended a step in Error by hand, at its service. Done: it is carried out. Undone: it \
                 is undone. Skipped: the order goes on without it, if it is optional. No service is called. Dropped: \
                 the steps of its line are undone, and the order goes on with the others. Once no step is in Error, the order goes on in its direction. 409 while a call may still have its effect. \
                 202 means that the command is queued; the scheduler decides.",
            )
            .reads(of::<Settle<'static>>),
        command("/orders/{id}/note", "noteOrder", "Write a note on an order")
            .says(
                "An operator writes down what was found or done, and may take the order on or let it go. Nothing else \
                 changes: the order neither waits nor goes on because of it. An unfinished order has at most 20 \
                 notes, and its history keeps all of them. 409 if the same operator wrote the same words before. 202 \
                 means that the command is queued; the scheduler decides.",
            )
            .reads(of::<Note<'static>>),
        command("/orders/{id}/close", "closeOrder", "Close an order")
            .says(
                "Ends an order in Error that will never end by itself. Its steps stay as they are: no service is \
                 called, and nothing is undone. It cannot be taken back. 409 while a call may still have its effect; \
                 `detail` says until when. 202 means that the command is queued; the scheduler decides.",
            )
            .reads(of::<Command<'static>>),
        command("/orders/{id}/approve", "approveOrder", "Approve an order")
            .says(
                "Ends a step that waits for people as done; the order goes on. 409 if no step waits for an approval, \
                 if several do and Step is missing, or if the caller or By submitted the order or is the person who \
                 may not decide. 202 means that the decision is queued; the first one counts.",
            )
            .reads(of::<Decision<'static>>),
        command("/orders/{id}/reject", "rejectOrder", "Reject an order")
            .says(
                "Ends a step that waits for people as rejected; the workflow says whether the order is compensated or \
                 held. 409 as for approve. 202 means that the decision is queued; the first one counts.",
            )
            .reads(of::<Decision<'static>>),
        command("/orders/{id}/erase", "eraseOrder", "Erase an order")
            .says(
                "Takes all personal data out of an order that has ended, for good. The ids, states, times and codes \
                 stay. For administrators. 409 before its end. 202 means that the command is queued, or that it is \
                 erased already.",
            )
            .reads(of::<Command<'static>>),
        post("/orders/{id}/again", "postOrderAgain", Operating, "Post a compensated order again")
            .says(
                "Posts a new order with the same document, submitter, reply channel, correlation and priority. A \
                     repeat names the same new order. Each of the two orders names the other: see their documents.",
            )
            .takes([shared("OrderID"), shared("Prefer")])
            .reads(of::<Command<'static>>)
            .makes_an_order()
            .refuses(["StateConflict", "Unprocessable"]),
        post("/callbacks/{token}", "callBack", Services, "Tell the result of a call")
            .says(
                "For a service that took a call on with a 202. The address is the header Callback-Url of the \
                     call; whoever holds it may tell the result, so it needs no further authorisation. It may come \
                     before the answer to the call, twice or late: the rules of replies decide. So it is safe to \
                     repeat.",
            )
            .takes([shared("CallbackToken")])
            .reads(of::<Callback<'static>>)
            .gives(200, "It changes nothing, and says why. It need not be sent again.", of::<CalledBack<'static>>)
            .gives(202, "Queued; the scheduler decides.", of::<CalledBack<'static>>),
        post("/callbacks/{token}/heartbeat", "heartbeat", Services, "Say that a call is at work still")
            .says(
                "The step then waits for its result for wait_within from now on. One that adds less than a second \
                     changes nothing.",
            )
            .takes([shared("CallbackToken")])
            .gives(200, "It changes nothing, and says why. It need not be sent again.", of::<CalledBack<'static>>)
            .gives(202, "Queued; the scheduler decides.", of::<CalledBack<'static>>),
        get("/bulk", "listJobs", Operating, "List bulk jobs, newest first").takes([shared("Limit")]).gives(
            200,
            "The jobs.",
            of::<JobList<Job<'static>>>,
        ),
        post("/bulk", "planJob", Operating, "Plan a bulk job: the same action on many orders")
            .says(
                "A dry run: counts the matching orders in Error, or the compensated ones to post again, and \
                     stores the job. Orders that were posted again before are counted too; the job leaves them out.",
            )
            .reads(of::<Plan<'static>>)
            .gives(201, "The planned job. It does nothing until it is started.", of::<Job<'static>>),
        get("/bulk/{id}", "getJob", Operating, "Read a bulk job")
            .takes([shared("JobID"), shared("IfNoneMatch")])
            .gives(200, "The job.", of::<Job<'static>>),
        post("/bulk/{id}/start", "startJob", Operating, "Start a planned job")
            .takes([shared("JobID"), shared("IfMatch")])
            .reads(of::<Command<'static>>)
            .gives(202, "Done.", of::<Job<'static>>)
            .refuses(["JobConflict"]),
        post("/bulk/{id}/cancel", "cancelJob", Operating, "Cancel a job: it handles no further orders")
            .takes([shared("JobID"), shared("IfMatch")])
            .reads(of::<Command<'static>>)
            .gives(202, "Done.", of::<Job<'static>>)
            .refuses(["JobConflict"]),
        get("/dead-letters", "listDeadLetters", Watching, "List settled dead letters, last settled first")
            .takes([shared("Limit"), shared("Cursor")])
            .gives(200, "A page.", of::<DeadLetterList<DeadLetter<'static>>>),
        get("/alerts", "listAlerts", Watching, "List the causes that need an operator now, and those that ended last")
            .gives(
                200,
                "One alert for each cause: those that are on, then at most 100 that ended.",
                of::<AlertList<'static>>,
            ),
        get("/services", "listServices", Watching, "List the health of the remote services, by name").gives(
            200,
            "All services.",
            of::<ServiceList<'static>>,
        ),
        post(
            "/services/{name}/accept-rejections",
            "acceptRejections",
            Operating,
            "Say that the rejections of a service are right",
        )
        .says(
            "A service that rejects most steps is held back: its orders wait, and its rejections do not \
                     count. After this they count, until most answers are no rejections any more. A repeat changes \
                     nothing.",
        )
        .takes([shared("ServiceName")])
        .reads(of::<Command<'static>>)
        .gives(200, "Done. The instances of the agent know it within a second.", of::<Service<'static>>)
        .refuses(["ServiceConflict"]),
        get("/overview", "getOverview", Watching, "Read the overview")
            .says(
                "The overview of a console, for a poll every few seconds. Its work is bounded. Orders are counted \
                     as they change (CountedSince); on AWS the counts are late by up to half a minute. A stack on AWS \
                     that is older than the count reads about 1,000 tasks at most, for each state that is not final, \
                     and for the newest orders. There several states share an index, so a count may stop early; \
                     AtLeast is then true.",
            )
            .gives(200, "The present status.", of::<Overview<'static>>),
        get("/numbers", "getNumbers", Watching, "Read what happened in the last minutes, hours or days, or on one day")
            .says(
                "Exact counts and percentiles by workflow, step and service. On AWS they are late by up to half a \
                     minute. A stack on AWS that is older than the count has in Counts only the orders in flight, up \
                     to about 1,000 of each state.",
            )
            .takes(parts::spans())
            .gives(200, "The numbers.", of::<Numbers<'static>>)
            .refuses(["NoPage"]),
        get("/metrics", "getMetrics", Watching, "Read the metrics of Prometheus")
            .says(
                "Counters since the count began, durations, and the present state, in the text format of \
                     Prometheus 0.0.4. A stack on AWS that is older than the count has no stepwarden_orders_by_state. \
                     stepwarden_oldest_order_seconds is there on one machine only.",
            )
            .gives(200, "The metrics.", parts::text)
            .refuses(["NoPage"]),
        get("/leases", "listLeases", Watching, "List the supervisors' leases and their last runs").gives(
            200,
            "All leases, by name.",
            of::<LeaseList<'static>>,
        ),
        get("/schedules", "listSchedules", Watching, "List the schedules, their next due times and last orders").gives(
            200,
            "The schedules that apply.",
            of::<ScheduleList<'static>>,
        ),
        get("/workflows", "listWorkflows", Watching, "List the workflows and their steps").gives(
            200,
            "All versions of all workflows.",
            of::<WorkflowList<'static>>,
        ),
        get("/workflows/{name}/{version}", "getWorkflow", Watching, "Show the text of a version")
            .takes([shared("WorkflowName"), shared("WorkflowVersion")])
            .gives(200, "The version as it was applied.", of::<Definition<'static>>),
        post(
            "/workflows/{name}/{version}/retire",
            "retireWorkflow",
            Operating,
            "Retire a version: no new order begins with it",
        )
        .says(
            "Refused while an order of the version is open, or new orders begin with it. A repeat changes \
                     nothing.",
        )
        .takes([shared("WorkflowName"), shared("WorkflowVersion")])
        .reads(of::<Command<'static>>)
        .gives(200, "Retired.", of::<Definition<'static>>)
        .refuses(["ConfigurationRefused"]),
        post("/workflows/{name}/{version}/try", "tryOrder", Watching, "Show what the steps of an order would send")
            .says(
                "Calls no service, reads no secret and stores nothing. An order that a post would be refused for is \
                     refused likewise. The settings of the agents are those that apply now; to callers who are no \
                     administrators the values of their headers are shown as [redacted]. A body is shown up to 16 KiB.",
            )
            .takes([shared("WorkflowName"), shared("WorkflowVersion")])
            .reads(of::<Try<'static>>)
            .gives(200, "The steps.", of::<Tried<'static>>)
            .refuses(["Unprocessable", "ConfigurationRefused"]),
        post("/workflows/{name}/choose", "chooseWorkflow", Operating, "Choose the version that new orders begin with")
            .says(
                "All new orders of the workflow, or a share of them. Orders under way keep their version. Every \
                     instance follows within 5 s.",
            )
            .takes([shared("WorkflowName")])
            .reads(of::<Choose<'static>>)
            .gives(200, "Chosen. The answer lists all workflows.", of::<WorkflowList<'static>>)
            .refuses(["ConfigurationRefused"]),
        get("/configuration", "getConfiguration", Operating, "Show the settings that apply").gives(
            200,
            "What applies.",
            of::<Configuration<'static>>,
        ),
        post("/configuration", "applyConfiguration", Operating, "Apply a configuration folder")
            .says(
                "Workflows and agents apply to new orders within 5 s, without a deployment. A version of a \
                     workflow never changes once it is applied. The same folder again changes nothing.",
            )
            .reads(of::<Configure<'static>>)
            .gives(200, "Applied, or what a dry run would change.", of::<Configured<'static>>)
            .refuses(["ConfigurationRefused", "FaultyConfiguration"]),
        get("/openapi.json", "getContract", Orders, "Read this contract")
            .says(
                "With the schemas of the workflows that new orders begin with, as Order.NAME.VERSION; the body of POST \
                     /orders refers to them. At most 2 MiB of them.",
            )
            .gives(200, "OpenAPI 3.1.", parts::anything),
        get(PROBLEM_PAGE, "getProblem", About, "Read about a problem: its meaning and its remedy")
            .takes([parts::problem_name()])
            .gives(200, "The page, in plain text.", parts::text)
            .refuses(["NoPage"]),
        get("/health", "getHealth", About, "Check that this process answers").gives(
            200,
            "The process answers.",
            of::<Health<'static>>,
        ),
        get("/ready", "getReadiness", About, "Check that this process can do its work")
            .says("On one machine: a write reaches the disk now. Deployed functions have no such path.")
            .gives(200, "The process is ready.", of::<Health<'static>>)
            .refuses(["NoPage", "NotReady"]),
    ]
}

/// A command about an order.
fn command(path: &'static str, id: &'static str, summary: &'static str) -> Call {
    post(path, id, Operating, summary)
        .takes([shared("OrderID"), shared("IfMatch")])
        .gives(202, "Queued.", of::<Queued<'static>>)
        .refuses(["StateConflict"])
}
