// Charts of attempts over time: how many ended and how, the share that failed, and how long the successful ones took.

import { h } from "./dom.js";
import { count, plural, table } from "./parts.js";
import { bars, ceiling, ends, legend, momentOf, plot, sum, yOf } from "./pictures.js";
import { length } from "./time.js";

// From the bottom to the top of a bar: name, colour, word.
const OUTCOMES = [
  ["Done", "Processed", "done"],
  ["Rejected", "Compensated", "rejected"],
  ["Expired", "Error", "without an answer"],
];
// In an outage most attempts are given back, and none ends.
const BARS = [...OUTCOMES, ["Deferred", "Pending", "given back"]];
const FAILED = [["Share", "Error", "failed"]];
const PERCENTILES = [
  ["p50", "P50Ms"],
  ["p95", "P95Ms"],
  ["p99", "P99Ms"],
];

/** The share of the attempts of a span that failed, as text. */
export function failedShare(attempts) {
  return sum(attempts, OUTCOMES) ? `${percent(attempts).toFixed(1)} %` : "–";
}

/** The attempts that were given back without a failure, in words. */
function deferred(spans) {
  const number = spans.reduce((so_far, one) => so_far + (one.Deferred ?? 0), 0);
  return number ? ` ${plural(number, "attempt")} deferred: the service was failing, busy, or at work on the call.` : "";
}

function percent(attempts) {
  const ended = sum(attempts, OUTCOMES);
  return ended ? (1 - attempts.Done / ended) * 100 : 0;
}

/**
 * The charts of one direction. `spans`: `At` with the attempts of each span; `minutes` were counted in all; `name` tells
 * the charts of a page apart.
 */
export function attemptCharts(spans, { name, during, each, minutes }) {
  const all = spans.filter((one) => one.Begun > 0 || one.Deferred > 0 || sum(one, OUTCOMES) > 0);
  if (!all.length) return h("p", { class: "empty" }, `No attempt ${during}.`);
  const total = (part) => all.reduce((so_far, one) => so_far + (one[part] ?? 0), 0);
  const totals = Object.fromEntries(["Begun", "Done", "Rejected", "Expired", "Deferred"].map((part) => [part, total(part)]));
  const moment = momentOf(each);
  const words = (one) => `${moment(one)}: ${inWords(one)}`;
  const busiest = Math.max(1, ...all.map((one) => sum(one, BARS)));
  const worst = Math.max(...all.map(percent));
  return h(
    "figure",
    { class: "chart" },
    h("h3", {}, `Attempts that ended or were given back, each ${each}`),
    bars(spans, BARS, {
      name,
      label: `Bars, one for each ${each}. ${plural(totals.Begun, "attempt")} begun ${during}: ${outcomes(totals)}.`,
      top: ceiling(busiest),
      title: words,
    }),
    legend(BARS.map(([part, color, word]) => [`${word} ${count(totals[part])}`, { "data-state": color }])),
    h("p", { class: "quiet" }, rate(totals.Begun, minutes), deferred(all)),
    h("h3", {}, "Share that failed"),
    worst > 0
      ? bars(spans.map((one) => ({ ...one, Share: percent(one) })), FAILED, {
          name: `${name}-failed`,
          label: `Bars, one for each ${each}: the share that was rejected or expired. ${failedShare(totals)} in all, at most ${worst.toFixed(1)} %.`,
          top: Math.min(100, ceiling(worst)),
          unit: " %",
          title: words,
        })
      : h("p", { class: "quiet" }, "None failed."),
    h("h3", {}, "From the first attempt to the success"),
    durations(spans, { each, words }),
    ends(spans, each),
    h(
      "details",
      { class: "numbers" },
      h("summary", {}, "The numbers"),
      numbers(all, each, moment),
    ),
  );
}

function outcomes(one) {
  return OUTCOMES.map(([part, , word]) => `${one[part].toLocaleString()} ${word}`).join(", ");
}

function inWords(one) {
  const took = one.Took ? `, ${PERCENTILES.map(([word, name]) => `${word} ${length(one.Took[name])}`).join(", ")}` : "";
  return `${one.Begun.toLocaleString()} begun, ${outcomes(one)}, ${failedShare(one)} failed${took}`;
}

function rate(begun, minutes) {
  const each = begun / minutes;
  const [number, unit] = each >= 60 ? [each / 60, "second"] : each >= 1 ? [each, "minute"] : [each * 60, "hour"];
  return `${plural(begun, "attempt")} begun: ${number.toLocaleString([], { maximumFractionDigits: 1 })} each ${unit} on average.`;
}

/** Three curves over the powers of ten. */
function durations(spans, { each, words }) {
  const took = spans.filter((one) => one.Took);
  if (!took.length) return h("p", { class: "quiet" }, "None succeeded.");
  const power = (ms, round) => round(Math.log10(Math.max(1, ms)));
  const low = Math.min(...took.map((one) => power(one.Took.P50Ms, Math.floor)));
  const high = Math.max(low + 1, ...took.map((one) => power(one.Took.P99Ms, Math.ceil)));
  const share = (ms) => 1 - (Math.log10(Math.max(1, ms)) - low) / (high - low);
  const powers = Array.from({ length: high - low + 1 }, (_, at) => high - at);
  const step = 100 / spans.length;
  const slowest = took.reduce((one, other) => (other.Took.P99Ms > one.Took.P99Ms ? other : one));
  return [
    plot({
      label: `Curves of the median, the 95th and the 99th percentile, for each ${each}. The slowest: ${words(slowest)}.`,
      marks: powers.map((one) => [(high - one) / (high - low), length(10 ** one).replace(".0", "")]),
      content: [
        PERCENTILES.map(([kind, name]) => curve(spans, kind, (one) => one.Took && share(one.Took[name]), step)),
        spans.map((one, at) =>
          one.Took
            ? h(
                "rect",
                { class: "over", x: `${at * step}%`, width: `${step}%`, y: "0", height: "100%" },
                h("title", {}, words(one)),
              )
            : null,
        ),
      ],
    }),
    legend(PERCENTILES.map(([word]) => [word, { "data-kind": word }])),
  ];
}

/** Lines between neighbours. A span without a neighbour is a point. */
function curve(spans, kind, shareOf, step) {
  const x = (at) => `${(at + 0.5) * step}%`;
  return spans.flatMap((one, at) => {
    const share = shareOf(one);
    if (share === undefined) return [];
    const next = spans[at + 1] && shareOf(spans[at + 1]);
    if (next !== undefined)
      return [
        h("line", { class: "curve", "data-kind": kind, x1: x(at), y1: yOf(share), x2: x(at + 1), y2: yOf(next) }),
      ];
    const isAlone = !(spans[at - 1] && shareOf(spans[at - 1]) !== undefined);
    return isAlone ? [h("circle", { class: "curve point", "data-kind": kind, cx: x(at), cy: yOf(share), r: "2.5" })] : [];
  });
}

function numbers(all, each, moment) {
  return table({
    caption: `Attempts in each ${each}`,
    hideCaption: true,
    rows: all,
    key: (one) => one.At,
    empty: "None.",
    columns: [{ name: each === "minute" ? "Minute" : "From", isName: true, cell: moment }, ...columns((one) => one)],
  });
}

/** The columns of a table of attempts. */
export function columns(of) {
  const counted = [
    ["Begun", "Begun"],
    ["Done", "Done"],
    ["Expired", "Expired"],
    ["Rejected", "Rejected"],
  ];
  return [
    ...counted.map(([name, part]) => ({ name, kind: "num", cell: (one) => count(of(one)[part]) })),
    { name: "Deferred", kind: "num", cell: (one) => (of(one).Deferred ? count(of(one).Deferred) : "–") },
    { name: "Skipped", kind: "num", cell: (one) => (of(one).Skipped ? count(of(one).Skipped) : "–") },
    { name: "Failed", kind: "num", cell: (one) => failedShare(of(one)) },
    ...percentiles((one) => of(one).Took),
    ...percentiles((one) => of(one).Calls, "call ").filter(({ name }) => name !== "call p95"),
  ];
}

/** The columns of percentiles. */
export function percentiles(of, before = "") {
  return PERCENTILES.map(([word, name]) => ({
    name: `${before}${word}`,
    kind: "num",
    cell: (one) => (of(one) ? length(of(one)[name]) : "–"),
  }));
}
