// One remote service: whether it answers, what it fails with, the orders that wait for it, its outages and its numbers.

import { Problem, get, getIfThere, getOnce, withQuery } from "./api.js";
import { fragment, h } from "./dom.js";
import { named } from "./drawing.js";
import { charts, choice, lastOf, spanOf, spanWords, steps } from "./numbers.js";
import { fact, heading, health, panel, probe, table } from "./parts.js";
import { acceptButton, accepted, needsOperator, waiting } from "./services.js";
import { when } from "./time.js";
import { local } from "./words.js";
import { workflowLink } from "./workflows.js";

// What a problem is, the first that fits. The problem itself stands beside it.
const PROBLEMS = [
  [/\bHTTP (\d{3})\b/, ([, status]) => `status ${status}`],
  [/\bdns error\b|lookup address/i, () => "its name is not found (DNS)"],
  [/certificate|\btls (error|handshake)|handshake/i, () => "no secure connection (TLS)"],
  [/refused/i, () => "the connection is refused"],
  [/no answer|timed out|time-?out/i, () => "no answer in time"],
];

export const service = {
  name: "service",
  title: ({ id }) => `Service ${id}`,
  async load({ id, params }, signal) {
    const [list, numbers, alerts, workflows] = await Promise.all([
      get("services", signal),
      getIfThere(withQuery("numbers", { service: id, ...spanOf(params) }), signal),
      getIfThere("alerts", signal),
      getOnce("workflows", signal),
    ]);
    const one = list.Services.find(({ Service }) => Service === id);
    if (!one) throw new Problem(404, { detail: `There is no service ${id}` });
    const outages = (alerts?.Alerts ?? []).filter(({ Cause }) => Cause.startsWith(`service/${id}/`));
    return { one, numbers, outages, workflows: workflows?.Workflows ?? [] };
  },
  render({ one, numbers, outages, workflows }, { id, params, changed }) {
    const span = lastOf(params);
    const [last] = span;
    return fragment(
      heading(id, h("p", { class: "beside" }, health(one))),
      standing(one, changed),
      panel("outages", "Outages", history(one, outages)),
      panel(
        "numbers",
        `Attempts of ${spanWords(span)}`,
        numbers
          ? [choice(last, `#/service/${encodeURIComponent(id)}`), charts(numbers, params)]
          : h("p", { class: "empty" }, "This API keeps no numbers. It is older, or you may not see them."),
      ),
      numbers
        ? panel("steps", "By step, the slowest first", steps(numbers.Steps.filter(({ Service }) => Service === id), last))
        : null,
      panel("asked-by", "Steps that ask it", askedBy(workflows, id)),
    );
  },
};

function standing(one, changed) {
  const isWell = one.State === "Closed";
  const tone = isWell ? "good" : needsOperator(one) ? "bad" : "wait";
  return h(
    "section",
    { class: "panel standing", "data-tone": tone, "aria-labelledby": "standing-head", id: "standing" },
    h("h2", { id: "standing-head" }, isWell ? `${one.Service} answers.` : local(one.Text ?? `${one.Service} is failing.`)),
    h(
      "dl",
      { class: "facts" },
      fact("Circuit breaker", breaker(one)),
      fact("In this state since", one.Since && when(one.Since)),
      fact("Failing since", one.OutageSince && when(one.OutageSince)),
      fact("Fails with", one.Problem && [h("strong", {}, kind(one)), h("span", { class: "block" }, one.Problem)]),
      fact("Failures in a row", one.FailuresInARow || null),
      fact("Next probe", probe(one)),
      fact("Orders that wait for it", one.OrdersWaiting && waitingLinks(one)),
      fact("Rejections", one.RejectionsAccepted && [accepted(one), `: ${one.RejectionsAccepted.Reason}`]),
    ),
    one.ToDo ? h("p", { class: "todo" }, h("strong", {}, "What to do: "), one.ToDo) : null,
    h("div", { class: "buttons", id: "actions" }, acceptButton(one, changed)),
  );
}

function breaker({ State }) {
  return { Closed: "closed: calls go through", Open: "open: orders wait", HalfOpen: "half-open: one call is a probe" }[State] ?? State;
}

/** The kind of the problem in a few words. */
function kind({ Reason, Problem: text }) {
  if (Reason === "rejections") return "rejections";
  const [pattern, words] = PROBLEMS.find(([known]) => known.test(text)) ?? [];
  const found = pattern ? words(pattern.exec(text)) : null;
  return [Reason === "misconfigured" ? "misconfigured" : null, found].filter(Boolean).join(", ") || "failing";
}

function waitingLinks(one) {
  const link = (state, words) =>
    h("a", { href: withQuery("#/orders", { state, service: one.Service }) }, words);
  if (!one.OrdersWaiting.Count) return "none";
  return [waiting(one.OrdersWaiting), ": ", link("Processing", "under way"), ", ", link("Compensating", "being undone")];
}

function history(one, outages) {
  return [
    one.State === "Closed" && one.Since && !outages.some(({ EndedAt }) => !EndedAt)
      ? h("p", {}, "Its calls go through since ", when(one.Since), ".")
      : null,
    table({
      caption: "The last outages that were reported",
      hideCaption: true,
      rows: outages,
      key: ({ Cause, Since }) => `${Cause} ${Since}`,
      empty: "No outage was reported. One of less than five minutes is reported only if it needs an operator.",
      columns: [
        { name: "Began", isName: true, cell: ({ Since }) => when(Since) },
        { name: "Ended", cell: ({ EndedAt }) => (EndedAt ? when(EndedAt) : "it is on") },
        { name: "Reason", cell: ({ Cause }) => Cause.split("/").at(-1) },
        { name: "What happened", kind: "text", cell: ({ Text }) => local(Text) },
      ],
    }),
  ];
}

function askedBy(workflows, id) {
  const rows = workflows
    .filter(({ RetiredAt }) => !RetiredAt)
    .map((one) => ({ one, steps: one.Steps.filter(({ Agent }) => Agent === id).map(({ Name }) => Name) }))
    .filter((row) => row.steps.length);
  return table({
    caption: "Workflows with steps at this service",
    hideCaption: true,
    rows,
    key: ({ one }) => named(one),
    empty: "No step of a workflow names it.",
    columns: [
      { name: "Workflow", isName: true, cell: ({ one }) => workflowLink(one.Name, one.Version) },
      { name: "Steps", kind: "text", cell: (row) => row.steps.join(", ") },
    ],
  });
}
