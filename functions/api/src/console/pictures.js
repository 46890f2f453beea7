// Charts as inline SVG. Each chart has a text with the same content. Colour is never the only sign: values that need
// attention are also hatched.

import { h } from "./dom.js";
import { count, plural, table } from "./parts.js";
import { minute, when } from "./time.js";

const HEIGHT = 120;

/** A bar of width `share` (0 to 1). The number beside it says the same, so a screen reader skips the bar. */
export function bar(share, name) {
  const width = share > 0 ? Math.max(1.5, share * 100) : 0;
  return h(
    "svg",
    { class: "bar-of", "data-state": name, width: "100%", height: "6", "aria-hidden": "true", focusable: "false" },
    h("rect", { class: "ground", width: "100%", height: "6", rx: "3" }),
    width ? h("rect", { class: "fill", width: `${width}%`, height: "6", rx: "3" }) : null,
  );
}

/** Parts of a whole side by side: `parts` as `[name, number]`. */
export function share(parts, whole, text) {
  let from = 0;
  const bars = parts
    .filter(([, number]) => number > 0)
    .map(([name, number]) => {
      const width = (number / Math.max(whole, 1)) * 100;
      const part = h(
        "rect",
        { class: "fill", "data-state": name, x: `${from}%`, width: `${width}%`, height: "10" },
        h("title", {}, `${name}: ${number}`),
      );
      from += width;
      return part;
    });
  return h(
    "svg",
    { class: "share", width: "100%", height: "10", role: "img", "aria-label": text },
    h("rect", { class: "ground", width: "100%", height: "10" }),
    bars,
  );
}

// From the bottom to the top of a bar.
const OUTCOMES = [
  ["Processed", "Processed"],
  ["Compensated", "Compensated"],
  ["Closed", "Closed"],
  ["UnderWay", "Processing"],
  ["Error", "Error"],
];
const WORDS = { Processed: "processed", Compensated: "compensated", Closed: "closed", UnderWay: "under way", Error: "in Error" };

// What happened in a span, where each order is counted as it changes.
const EVENTS = OUTCOMES.filter(([name]) => name !== "UnderWay");

/**
 * The orders of spans of time. `counted`: what happened in each span; otherwise the orders accepted in each span, by
 * their present state, and `complete` says whether these are all of them.
 */
export function throughput(spans, { complete = true, counted = false, last, each = "minute" }) {
  const shown = counted ? EVENTS : OUTCOMES;
  const size = (one) => (counted ? shown.reduce((sum, [name]) => sum + (one[name] ?? 0), 0) : one.Accepted);
  const highest = Math.max(1, ...spans.map(size));
  const top = ceiling(highest);
  const total = (name) => spans.reduce((sum, one) => sum + (one[name] ?? 0), 0);
  const sum =
    `${plural(total("Accepted"), "order", !complete)} accepted in the last ${last}: ` +
    shown.map(([name]) => `${total(name)} ${WORDS[name]}`).join(", ") +
    ".";
  const step = 100 / Math.max(spans.length, 1);
  const bars = spans.map((one, at) => column(one, shown, at * step, step, top));
  const moment = (one) => (each === "minute" ? minute(one.At) : when(one.At, "clock"));
  return h(
    "figure",
    { class: "chart" },
    h(
      "div",
      { class: "plot" },
      h("span", { class: "most", "aria-hidden": "true" }, String(top)),
      h(
        "svg",
        { width: "100%", height: String(HEIGHT + 2), role: "img", "aria-label": `Bars, one for each ${each}. ${sum}` },
        h("defs", {}, hatch()),
        h("line", { class: "grid", x1: "0", x2: "100%", y1: "1", y2: "1" }),
        h("line", { class: "grid", x1: "0", x2: "100%", y1: HEIGHT / 2, y2: HEIGHT / 2 }),
        bars,
        h("line", { class: "axis", x1: "0", x2: "100%", y1: HEIGHT + 1, y2: HEIGHT + 1 }),
      ),
    ),
    h(
      "div",
      { class: "ends", "aria-hidden": "true" },
      spans.length ? [h("span", {}, moment(spans[0])), h("span", {}, moment(spans.at(-1)))] : null,
    ),
    h(
      "ul",
      { class: "legend", "aria-hidden": "true" },
      shown.map(([name, color]) =>
        h("li", {}, h("span", { class: "swatch", "data-state": color }), `${WORDS[name]} ${count(total(name))}`),
      ),
    ),
    h(
      "details",
      { class: "numbers" },
      h("summary", {}, "The numbers"),
      h("p", {}, sum, complete ? "" : " There were more orders than were looked at."),
      table({
        caption: counted ? `What happened in each ${each}` : "Orders accepted in each minute, and what became of them",
        hideCaption: true,
        rows: spans.filter((one) => one.Accepted > 0 || size(one) > 0),
        key: (one) => one.At,
        empty: counted ? "Nothing happened in this time." : "No order was accepted in this time.",
        columns: [
          { name: each === "minute" ? "Minute" : "From", cell: moment },
          { name: "Accepted", kind: "num", cell: (one) => one.Accepted },
          ...shown.map(([name]) => ({ name: WORDS[name], kind: "num", cell: (one) => one[name] ?? 0 })),
          ...(counted ? [{ name: "under way at the end", kind: "num", cell: (one) => one.UnderWay }] : []),
        ],
      }),
    ),
  );
}

function column(one, shown, x, width, top) {
  let y = HEIGHT;
  const parts = shown.flatMap(([name, color]) => {
    const number = one[name] ?? 0;
    if (!number) return [];
    const height = Math.max(2, (number / top) * (HEIGHT - 4));
    y -= height;
    const place = { x: `${x + width * 0.12}%`, width: `${width * 0.76}%`, y: y.toFixed(1), height: height.toFixed(1) };
    const rect = h("rect", { class: "fill", "data-state": color, ...place });
    return name === "Error" ? [rect, h("rect", { class: "hatched", fill: "url(#hatch)", ...place })] : [rect];
  });
  if (!parts.length) return null;
  const words = shown
    .filter(([name]) => one[name])
    .map(([name]) => `${one[name]} ${WORDS[name]}`)
    .join(", ");
  return h("g", {}, h("title", {}, `${minute(one.At)}: ${plural(one.Accepted, "order")} accepted (${words})`), parts);
}

/** Stripes over values that need attention. */
export function hatch() {
  return h(
    "pattern",
    { id: "hatch", width: "6", height: "6", patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    h("rect", { class: "stripe", width: "2", height: "6" }),
  );
}

/** The next round number: 1, 2, 3 … 10, 20, 30 … */
function ceiling(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((round) => round >= number);
}
