// Jobs: the same action on many orders. This file has the list, and one job with its plan, start and progress.

import { inWords } from "./actions.js";
import { Problem, get, post, withQuery } from "./api.js";
import { open, whoAndWhy, wish } from "./dialog.js";
import { announce, fragment, h } from "./dom.js";
import { count, heading, notice, panel, plural, table } from "./parts.js";
import { share } from "./pictures.js";
import { clock, when } from "./time.js";
import { JOB_ACTIONS } from "./words.js";

const SIGNS = { Planned: "○", Canary: "◐", Running: "◐", Done: "✓", Stopped: "!", Cancelled: "–" };
// The colour of a job's state.
const COLORS = {
  Planned: "Pending",
  Canary: "Processing",
  Running: "Processing",
  Done: "Processed",
  Stopped: "Error",
  Cancelled: "Pending",
};

export const jobs = {
  name: "jobs",
  title: () => "Jobs",
  load: (_route, signal) => get(withQuery("bulk", { limit: 50 }), signal),
  render({ Jobs }) {
    return fragment(
      heading("Jobs", h("a", { class: "button primary", href: "#/jobs/new" }, "Handle many orders…")),
      h(
        "p",
        { class: "lead" },
        "A job does the same with many orders: a few first, then the others at a rate. ",
        "It stops by itself when too many fail again.",
      ),
      table({
        caption: "Jobs, newest first",
        hideCaption: true,
        rows: Jobs,
        key: (one) => one.JobID,
        empty: "There was no job yet.",
        columns: [
          {
            name: "Job",
            isName: true,
            kind: "text",
            cell: (one) => h("a", { href: `#/job/${encodeURIComponent(one.JobID)}` }, one.Reason),
          },
          { name: "Action", kind: "text", cell: (one) => JOB_ACTIONS[one.Action]?.label ?? one.Action },
          { name: "State", cell: jobState },
          { name: "Which orders", kind: "text", cell: (one) => selector(one.Selector) },
          { name: "Progress", cell: progress },
          { name: "By", kind: "text", cell: (one) => one.By },
          { name: "Planned", cell: (one) => when(one.PlannedAt, "brief") },
        ],
      }),
    );
  },
};

export const job = {
  name: "jobs",
  title: () => "Job",
  load: ({ id }, signal) => get(`bulk/${encodeURIComponent(id)}`, signal),
  render(one, { changed }) {
    const started = one.State !== "Planned";
    return fragment(
      heading(one.Reason, h("p", { class: "beside" }, jobState(one))),
      h(
        "section",
        { class: "panel standing", "data-tone": tone(one), id: "standing", "aria-labelledby": "standing-head" },
        h("h2", { id: "standing-head" }, standing(one)),
        h("p", {}, selectorSentence(one)),
        one.Why ? h("p", {}, one.Why) : null,
        h(
          "div",
          { class: "buttons", id: "actions" },
          one.State === "Planned" && mayMatch(one)
            ? h(
                "button",
                { type: "button", class: "primary", "data-key": "start", onclick: () => act(one, "start", changed) },
                `Start: ${verb(one).toLowerCase()} ${orders(one)}${after(one)}…`,
              )
            : null,
          ["Planned", "Canary", "Running"].includes(one.State)
            ? h(
                "button",
                {
                  type: "button",
                  class: started ? "danger" : null,
                  "data-key": "cancel",
                  onclick: () => act(one, "cancel", changed),
                },
                started ? "Cancel job…" : "Discard…",
              )
            : null,
        ),
      ),
      (started && one.State !== "Cancelled") || one.Tally.Begun ? panel("progress", "Progress", whole(one)) : null,
      panel("plan-of", "Plan", facts(one)),
    );
  },
};

/** The state of a job: a sign and a word. */
export function jobState(one) {
  return h(
    "span",
    { class: "state", "data-state": COLORS[one.State] },
    h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[one.State] ?? "·"),
    one.State,
  );
}

function tone(one) {
  return (
    { Planned: "wait", Canary: "busy", Running: "busy", Done: "good", Stopped: "bad", Cancelled: "undone" }[
      one.State
    ] ?? "wait"
  );
}

function verb(one) {
  return JOB_ACTIONS[one.Action]?.verb ?? one.Action;
}

function after(one) {
  return JOB_ACTIONS[one.Action]?.after ?? "";
}

/** Whether there may be orders to handle. Of very many orders, the dry run looks at the newest alone. */
function mayMatch({ DryRun }) {
  return DryRun.Matching > 0 || !DryRun.Complete;
}

/** What a start of the job does. */
function consequence(one) {
  const count = orders(one);
  switch (one.Action) {
    case "Cancel":
      return `${count} in Error are cancelled: what was begun is undone. This cannot be taken back.`;
    case "Settle":
      return `The step ${one.Selector.Step} of ${count} in Error is settled by hand. No service is called for it.`;
    case "Close":
      return `${count} in Error end as they are. Nothing is undone. This cannot be taken back.`;
    case "Again":
      return `${count} are posted again. Each becomes one new order with new idempotency keys. The old orders stay as they are.`;
    default:
      return (
        `${count} in Error are resubmitted, each under the same idempotency key: ` +
        "what had its effect has it no second time."
      );
  }
}

function orders(one) {
  return plural(one.DryRun.Matching, "order", !one.DryRun.Complete);
}

function standing(one) {
  const { Recovered, FailedAgain } = one.Tally;
  switch (one.State) {
    case "Planned":
      return mayMatch(one)
        ? `Plan: ${orders(one)} ${one.DryRun.Matching === 1 ? "matches" : "match"}. Nothing is done yet.`
        : "Plan: no order matches. There is nothing to start.";
    case "Canary":
      return one.Canary === 1
        ? "The first one is on its way; the others wait for how it fares."
        : `The first ${one.Canary} are on their way; the others wait for their outcome.`;
    case "Running":
      return `Under way: ${one.RatePerSecond} orders a second.`;
    case "Done":
      return FailedAgain
        ? `Done: ${Recovered} recovered, ${FailedAgain} failed again.`
        : `Done: ${plural(Recovered, "order")} recovered.`;
    case "Stopped":
      return "It stopped itself. What was sent is carried out; nothing more is sent.";
    case "Cancelled":
      return one.Tally.Begun
        ? "It was cancelled. What was sent is carried out; nothing more is sent."
        : "It was discarded before it did anything.";
    default:
      return one.State;
  }
}

/** The selection of a job in a few words. */
export function selector({ ReasonCode, Step, FailedSince, FailedUntil }) {
  const words = [
    ReasonCode ?? "any reason",
    Step ? `at ${Step}` : null,
    FailedSince ? `since ${clock(FailedSince)}` : null,
    FailedUntil ? `until ${clock(FailedUntil)}` : null,
  ];
  return words.filter(Boolean).join(", ");
}

function selectorSentence({ Action, Selector }) {
  return `${Action === "Again" ? "Compensated orders" : "Orders in Error"}: ${selector(Selector)}.`;
}

function parts({ Tally, UnderWay }) {
  return [
    ["Processed", Tally.Recovered],
    ["Processing", UnderWay],
    ["Error", Tally.FailedAgain],
  ];
}

/** Nobody follows the orders of a job that was ended early. */
function underWay({ State }) {
  return ["Stopped", "Cancelled"].includes(State) ? "under way then" : "under way";
}

function progress(one) {
  if (one.State === "Planned") return `${count(one.DryRun.Matching, !one.DryRun.Complete)} match`;
  const { Recovered, FailedAgain, PassedOver } = one.Tally;
  return h(
    "span",
    { class: "progress" },
    `${Recovered + FailedAgain + PassedOver} of ${count(one.DryRun.Matching, !one.DryRun.Complete)}`,
    share(
      parts(one),
      Math.max(one.DryRun.Matching, one.Tally.Begun),
      `${Recovered} recovered, ${one.UnderWay} ${underWay(one)}, ${FailedAgain} failed again`,
    ),
  );
}

function whole(one) {
  const { Begun, Recovered, FailedAgain, Late, PassedOver } = one.Tally;
  const numbers = [
    ["put on their way", Begun, null],
    ["recovered", Recovered, "Processed"],
    [underWay(one), one.UnderWay, "Processing"],
    ["failed again", FailedAgain, "Error"],
    ["of them not settled in time", Late ?? 0, null],
    ["somebody else saw to them", PassedOver, null],
    [["Canary", "Running"].includes(one.State) ? "wait for their turn" : "were left as they are", one.Waiting, null],
  ];
  return [
    share(
      parts(one),
      Math.max(one.DryRun.Matching, Begun),
      `${Recovered} recovered, ${one.UnderWay} ${underWay(one)}, ${FailedAgain} failed again, of ${orders(one)}`,
    ),
    h(
      "ul",
      { class: "numbers-list" },
      numbers
        .filter(([, number], at) => number || at < 4)
        .map(([words, number, color]) =>
          h(
            "li",
            {},
            color ? h("span", { class: "swatch", "data-state": color, "aria-hidden": "true" }) : null,
            h("b", {}, count(number)),
            ` ${words}`,
          ),
        ),
    ),
  ];
}

function facts(one) {
  const fact = (name, value) => (value ? h("div", {}, h("dt", {}, name), h("dd", {}, value)) : null);
  return h(
    "dl",
    { class: "facts" },
    fact("Planned", [`by ${one.By}, `, when(one.PlannedAt)]),
    fact("Started", one.StartedBy),
    fact("Dry run", one.DryRun.Message),
    fact("Canaries", String(one.Canary)),
    fact("Rate", `${one.RatePerSecond} orders a second`),
    fact("Stops", `when more than ${one.StopAtFailedPercent} % fail again`),
    fact("Job", h("span", { class: "id" }, one.JobID)),
  );
}

function act(one, action, changed) {
  const starting = action === "start";
  const it = { error: null, sending: false };
  const submit = async (event) => {
    event.preventDefault();
    const who = wish(event.target);
    if (!who || it.sending) return;
    it.sending = true;
    dialog.redraw();
    try {
      // A start applies to this plan. A cancellation applies to the job in any state.
      await post(`bulk/${encodeURIComponent(one.JobID)}/${action}`, who, starting ? one.Version : undefined);
      announce(starting ? "The job is started." : "The job is cancelled.");
      dialog.close();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      it.error = inWords(error, "It is not known whether this was done; look at the job, or send it again.");
      it.sending = false;
      announce(it.error);
      dialog.redraw();
    }
  };
  const what = starting
    ? [
        consequence(one),
        `The first ${one.DryRun.Complete ? Math.min(one.Canary, one.DryRun.Matching) : one.Canary} go alone. ` +
          `If more than ${one.StopAtFailedPercent} % of them fail again, the job stops.`,
        `The others follow, ${one.RatePerSecond} in a second. You can cancel it at any time.`,
      ]
    : [
        one.State === "Planned"
          ? "The plan is put away; no order is touched."
          : "Nothing more is put on its way. What was sent is carried out.",
      ];
  const dialog = open({
    title: starting ? "Start the job" : "Cancel the job",
    onclose: changed,
    draw: () => [
      it.error ? h("div", { id: "dialog-error" }, notice("bad", h("p", {}, it.error))) : null,
      h(
        "form",
        { "data-key": "ask", onsubmit: submit },
        h(
          "div",
          { class: "consequences", id: "consequences" },
          h("h3", {}, "What will happen"),
          h(
            "ul",
            {},
            what.map((line) => h("li", {}, line)),
          ),
        ),
        whoAndWhy(one.State === "Planned" && starting ? one.Reason : ""),
        h(
          "div",
          { class: "buttons" },
          h(
            "button",
            {
              type: "submit",
              class: starting ? "primary" : "danger",
              disabled: it.sending,
              "aria-describedby": "consequences",
            },
            starting ? `${verb(one)} ${orders(one)}${after(one)}` : "Cancel job",
          ),
          h("button", { type: "button", onclick: () => dialog.close() }, "Leave it"),
        ),
      ),
    ],
  });
}
