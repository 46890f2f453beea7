// What happened in the last minutes, hours or days: how much, how long it took, what failed. The charts of one step are on
// this page, those of a service on its own.

import { getIfThere, withQuery } from "./api.js";
import { attemptCharts, columns, percentiles } from "./charts.js";
import { fragment, h } from "./dom.js";
import { count, heading, panel, table } from "./parts.js";
import { throughput } from "./pictures.js";
import { ms, when, zone } from "./time.js";

// The spans: the name in an address, the words of its link, and the length of time that a bar stands for.
const SPANS = [
  ["30m", "30 minutes", "minute"],
  ["24h", "24 hours", "10 minutes"],
  ["7d", "7 days", "hour"],
  ["30d", "30 days", "6 hours"],
];
const YESTERDAY = ["yesterday", "yesterday", "hour"];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
// The attempts whose charts are shown.
const ASKED = ["workflow", "step", "service"];
const NONE = { Begun: 0, Done: 0, Expired: 0, Rejected: 0 };

/** The span of an address. */
export const lastOf = (params) => [...SPANS, YESTERDAY].find(([name]) => name === params.get("last")) ?? SPANS[1];

/** The hours by which this machine is away from UTC: 0 if they are not whole, since numbers are kept by the hour of UTC. */
function hours() {
  const away = -new Date().getTimezoneOffset() / 60;
  return Number.isInteger(away) ? away : 0;
}

/** The span of an address as the API is asked for it. A day is one of this machine's zone. */
export function spanOf(params) {
  const [last] = lastOf(params);
  if (last !== YESTERDAY[0]) return { last };
  const there = new Date(Date.now() - DAY_MS + hours() * HOUR_MS).toISOString().slice(0, 10);
  const zone = `${hours() < 0 ? "-" : "+"}${String(Math.abs(hours())).padStart(2, "0")}:00`;
  return { day: there + zone };
}

/** A span after "of". */
export const spanWords = ([last, words]) =>
  last === YESTERDAY[0] ? `yesterday (${hours() ? zone() : "UTC"})` : `the last ${words}`;

/** A span after a verb. */
const during = (span) => (span[0] === YESTERDAY[0] ? spanWords(span) : `in ${spanWords(span)}`);

const askedOf = (params) => Object.fromEntries(ASKED.map((name) => [name, params.get(name)]));

export const numbers = {
  name: "numbers",
  title: ({ params }) => (params.get("step") ? `Numbers of ${params.get("step")}` : "Numbers"),
  load: ({ params }, signal) =>
    getIfThere(withQuery("numbers", { ...askedOf(params), ...spanOf(params) }), signal),
  render(all, { params }) {
    const asked = askedOf(params);
    const span = lastOf(params);
    const [chosen] = span;
    if (!all)
      return fragment(
        heading("Numbers"),
        h("p", { class: "empty" }, "This API keeps no numbers. It is older, or you may not see them."),
      );
    return fragment(
      heading("Numbers", choice(chosen, "#/numbers", asked)),
      asked.step ? ofStep(all, asked, params) : orders(all, span),
      panel("workflows", "By workflow", workflows(all)),
      panel("steps", "By step, the slowest first", steps(all.Steps, chosen)),
      panel("services", "By service", services(all.Services, chosen)),
      h("p", { class: "quiet" }, "An order's time runs from its submission to Processed, a step's from its first attempt to its success, with all waits. The time of a call is that of a success or a rejection: calls without an answer, and those that were repeated, have none. A percentile is at most an eighth too high."),
    );
  },
};

function orders(all, span) {
  const points = all.Points.map(({ At, UnderWay, Orders: { Failed, ...rest } }) => ({
    At,
    UnderWay,
    Error: Failed,
    ...rest,
  }));
  const chart = throughput(points, { counted: true, during: during(span), each: span[2] });
  return panel("throughput", `Orders of ${spanWords(span)}`, counted(all), chart);
}

function ofStep(all, { workflow, step, service }, params) {
  const where = [workflow, service && `at ${service}`].filter(Boolean).join(", ");
  return panel(
    "of-step",
    where ? `${step} (${where})` : step,
    h("p", {}, h("a", { href: withQuery("#/numbers", { last: params.get("last") }) }, "All orders")),
    counted(all),
    charts(all, params),
  );
}

function counted({ Since, From }) {
  return Since && Since > From ? h("p", { class: "quiet" }, "Counted since ", when(Since, "brief"), ".") : null;
}

/** The charts of the attempts that were asked for. Undos have charts of their own, if there were any. */
export function charts({ Points, PointSeconds, At, From, Since }, params) {
  const span = lastOf(params);
  const end = ms(Points.at(-1).At) + PointSeconds * 1_000;
  const counted_ms = Math.min(ms(At), end) - Math.max(ms(From), ms(Since ?? From));
  const minutes = Math.max(1, counted_ms / 60_000);
  const of = (name) => Points.map((point) => ({ At: point.At, ...NONE, ...point[name] }));
  const undone = Points.some((point) => point.Undo);
  const shown = { during: during(span), each: span[2], minutes };
  return [
    attemptCharts(of("Forward"), { name: "forward", ...shown }),
    undone
      ? [h("h3", { class: "undone" }, "Undone"), attemptCharts(of("Undo"), { name: "undo", ...shown })]
      : null,
  ];
}

/** Links to the other spans of a page. */
export function choice(chosen, path, parameters = {}) {
  return h(
    "ul",
    { class: "choice", "aria-label": "Span" },
    [...SPANS, YESTERDAY].map(([name, words]) =>
      h(
        "li",
        {},
        h(
          "a",
          { href: withQuery(path, { ...parameters, last: name }), "aria-current": name === chosen ? "true" : null },
          words,
        ),
      ),
    ),
  );
}

function workflows({ Workflows, Orders }) {
  const rows = Workflows.length > 1 ? [...Workflows, { Workflow: "all", Orders }] : Workflows;
  return table({
    caption: "Orders by workflow",
    hideCaption: true,
    rows,
    key: (one) => one.Workflow,
    empty: "Nothing happened in this time.",
    columns: [
      { name: "Workflow", isName: true, kind: "text", cell: (one) => one.Workflow },
      ...["Accepted", "Processed", "Compensated", "Closed", "Failed"].map((name) => ({
        name: name === "Failed" ? "Came to Error" : name,
        kind: "num",
        cell: (one) => count(one.Orders[name]),
      })),
      ...percentiles((one) => one.Orders.Took),
    ],
  });
}

/** A table of the attempts of steps, each with a link to its charts. */
export function steps(all, last) {
  const rows = [...all].sort((one, other) => (other.Attempts.Took?.P99Ms ?? 0) - (one.Attempts.Took?.P99Ms ?? 0));
  return table({
    caption: "Attempts by step, the slowest first",
    hideCaption: true,
    rows,
    key: (one) => `${one.Workflow} ${one.Step} ${one.Service} ${one.Direction}`,
    empty: "No step was called in this time.",
    columns: [
      {
        name: "Step",
        isName: true,
        kind: "text",
        cell: ({ Workflow, Step, Service, Direction }) => [
          h(
            "a",
            { href: withQuery("#/numbers", { workflow: Workflow, step: Step, service: Service, last }) },
            Direction === "Undo" ? `undo of ${Step}` : Step,
          ),
          h("span", { class: "quiet block" }, `${Workflow}, at ${Service}`),
        ],
      },
      ...columns((one) => one.Attempts),
    ],
  });
}

function services(all, last) {
  return table({
    caption: "Attempts by service",
    hideCaption: true,
    rows: all,
    key: (one) => `${one.Service} ${one.Direction}`,
    empty: "No service was called in this time.",
    columns: [
      {
        name: "Service",
        isName: true,
        kind: "text",
        cell: ({ Service, Direction }) =>
          h(
            "a",
            { href: withQuery(`#/service/${encodeURIComponent(Service)}`, { last }) },
            Direction === "Undo" ? `${Service}, undo` : Service,
          ),
      },
      ...columns((one) => one.Attempts),
    ],
  });
}
