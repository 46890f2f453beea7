// What happened in the last minutes, hours or days: how much, how long it took, what failed.

import { getIfThere, withQuery } from "./api.js";
import { fragment, h } from "./dom.js";
import { count, heading, panel, table } from "./parts.js";
import { throughput } from "./pictures.js";
import { length, when } from "./time.js";

// The spans, and the length of time that a bar of each stands for.
const SPANS = [
  ["30m", "30 minutes", "minute"],
  ["24h", "24 hours", "10 minutes"],
  ["7d", "7 days", "hour"],
  ["30d", "30 days", "6 hours"],
];

const lastOf = (params) => SPANS.find(([name]) => name === params.get("last")) ?? SPANS[1];

export const numbers = {
  name: "numbers",
  title: () => "Numbers",
  load: ({ params }, signal) => getIfThere(withQuery("numbers", { last: lastOf(params)[0] }), signal),
  render(all, { params }) {
    const [chosen, words, each] = lastOf(params);
    if (!all)
      return fragment(
        heading("Numbers"),
        h("p", { class: "empty" }, "This API keeps no numbers. A deployment on AWS sends them to CloudWatch."),
      );
    const spans = all.Points.map(({ At, UnderWay, Orders: { Failed, ...orders } }) => ({
      At,
      UnderWay,
      Error: Failed,
      ...orders,
    }));
    const since = all.Since && all.Since > all.From;
    return fragment(
      heading("Numbers", choice(chosen)),
      panel(
        "throughput",
        `Orders of the last ${words}`,
        since ? h("p", { class: "quiet" }, "Counted since ", when(all.Since, "brief"), ".") : null,
        throughput(spans, { counted: true, last: words, each }),
      ),
      panel("workflows", "By workflow", workflows(all)),
      panel("steps", "By step, the slowest first", steps(all.Steps)),
      panel("services", "By service", services(all.Services)),
      h("p", { class: "quiet" }, "A time runs from a step's first attempt to its success, with all waits. A percentile is at most an eighth too high."),
    );
  },
};

function choice(chosen) {
  return h(
    "ul",
    { class: "choice", "aria-label": "Span" },
    SPANS.map(([name, words]) =>
      h("li", {}, h("a", { href: `#/numbers?last=${name}`, "aria-current": name === chosen ? "true" : null }, words)),
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

function steps(all) {
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
        cell: (one) => [
          one.Direction === "Undo" ? `undo of ${one.Step}` : one.Step,
          h("span", { class: "quiet block" }, `${one.Workflow}, at ${one.Service}`),
        ],
      },
      ...attempts,
    ],
  });
}

function services(all) {
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
        cell: (one) => (one.Direction === "Undo" ? `${one.Service}, undo` : one.Service),
      },
      ...attempts,
    ],
  });
}

const attempts = [
  { name: "Begun", kind: "num", cell: ({ Attempts }) => count(Attempts.Begun) },
  { name: "Done", kind: "num", cell: ({ Attempts }) => count(Attempts.Done) },
  { name: "No answer", kind: "num", cell: ({ Attempts }) => count(Attempts.Expired) },
  { name: "Rejected", kind: "num", cell: ({ Attempts }) => count(Attempts.Rejected) },
  { name: "Failed", kind: "num", cell: ({ Attempts }) => failed(Attempts) },
  ...percentiles(({ Attempts }) => Attempts.Took),
];

function failed({ Done, Expired, Rejected }) {
  const ended = Done + Expired + Rejected;
  return ended ? `${(((Expired + Rejected) / ended) * 100).toFixed(1)} %` : "–";
}

function percentiles(of) {
  return ["P50Ms", "P95Ms", "P99Ms"].map((name) => ({
    name: name.replace("Ms", "").toLowerCase(),
    kind: "num",
    cell: (one) => (of(one) ? length(of(one)[name]) : "–"),
  }));
}
