// Charts as inline SVG. Each chart has a text with the same content. Colour is never the only sign: values that need
// attention are also hatched.

import { h } from "./dom.js";
import { count, plural, table } from "./parts.js";
import { clock, minute } from "./time.js";

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

// From the bottom to the top of a bar: name, colour, word.
const OUTCOMES = [
  ["Processed", "Processed", "processed"],
  ["Compensated", "Compensated", "compensated"],
  ["Closed", "Closed", "closed"],
  ["UnderWay", "Processing", "under way"],
  ["Error", "Error", "in Error"],
];

// What happened in a span, where each order is counted as it changes.
const EVENTS = [...OUTCOMES.filter(([name]) => name !== "UnderWay" && name !== "Error"), ["Error", "Error", "came to Error"]];

/**
 * The orders of spans of time. `counted`: what happened in each span; otherwise the orders accepted in each span, by
 * their present state, and `complete` says whether these are all of them.
 */
export function throughput(spans, { complete = true, counted = false, during, each = "minute" }) {
  const shown = counted ? EVENTS : OUTCOMES;
  const size = (one) => (counted ? sum(one, shown) : one.Accepted);
  const total = (name) => spans.reduce((all, one) => all + (one[name] ?? 0), 0);
  const words =
    `${plural(total("Accepted"), "order", !complete)} accepted ${during}: ` +
    shown.map(([name, , word]) => `${total(name)} ${word}`).join(", ") +
    ".";
  const moment = momentOf(each);
  return h(
    "figure",
    { class: "chart" },
    bars(spans, shown, {
      name: "orders",
      label: `Bars, one for each ${each}. ${words}`,
      top: ceiling(Math.max(1, ...spans.map(size))),
      title: (one) => `${moment(one)}: ${plural(one.Accepted, "order")} accepted (${described(one, shown)})`,
    }),
    ends(spans, each),
    legend(shown.map(([name, color, word]) => [`${word} ${count(total(name))}`, { "data-state": color }])),
    h(
      "details",
      { class: "numbers" },
      h("summary", {}, "The numbers"),
      h("p", {}, words, complete ? "" : " There were more orders than were looked at."),
      table({
        caption: counted ? `What happened in each ${each}` : "Orders accepted in each minute, and what became of them",
        hideCaption: true,
        rows: spans.filter((one) => one.Accepted > 0 || size(one) > 0),
        key: (one) => one.At,
        empty: counted ? "Nothing happened in this time." : "No order was accepted in this time.",
        columns: [
          { name: each === "minute" ? "Minute" : "From", cell: moment },
          { name: "Accepted", kind: "num", cell: (one) => one.Accepted },
          ...shown.map(([name, , word]) => ({ name: word, kind: "num", cell: (one) => one[name] ?? 0 })),
          ...(counted ? [{ name: "under way at the end", kind: "num", cell: (one) => one.UnderWay }] : []),
        ],
      }),
    ),
  );
}

/** How the beginning of a span is written. */
export function momentOf(each) {
  return (one) => (each === "minute" ? minute(one.At) : clock(one.At));
}

/** The sum of these parts of a span. */
export function sum(one, parts) {
  return parts.reduce((all, [name]) => all + (one[name] ?? 0), 0);
}

function described(one, parts) {
  return parts
    .filter(([name]) => one[name])
    .map(([name, , word]) => `${one[name].toLocaleString()} ${word}`)
    .join(", ");
}

/**
 * Bars over time, each of parts on top of each other: `parts` as `[name, colour, word]`. `title` describes a span,
 * `unit` follows the label of the top, `name` tells the charts of a page apart.
 */
export function bars(spans, parts, { name, label, top, title, unit = "" }) {
  const step = 100 / Math.max(spans.length, 1);
  return plot({
    label,
    marks: [[0, `${count(top)}${unit}`]],
    content: [
      h("defs", {}, hatch(`hatch-${name}`)),
      spans.map((one, at) => column(one, parts, { x: at * step, width: step, top, title, stripes: `hatch-${name}` })),
    ],
  });
}

/** The frame of a chart over time. `marks`: the heights of labels, from the top (0) to the bottom (1). */
export function plot({ label, marks, content }) {
  const line = (share) => h("line", { class: "grid", x1: "0", x2: "100%", y1: yOf(share), y2: yOf(share) });
  const shares = marks.length > 1 ? marks.map(([share]) => share) : [0, 0.5];
  return h(
    "div",
    { class: "plot" },
    h(
      "svg",
      { width: "100%", height: String(HEIGHT + 2), role: "img", "aria-label": label },
      shares.map(line),
      content,
      h("line", { class: "axis", x1: "0", x2: "100%", y1: HEIGHT + 1, y2: HEIGHT + 1 }),
      // The topmost stands below its line, the others above.
      marks.map(([share, text]) => h("text", { class: "mark", x: "0", y: share ? yOf(share) - 3 : 13 }, text)),
    ),
  );
}

/** The height of a share in a plot, from the top (0) to the bottom (1). */
export function yOf(share) {
  return (1 + share * (HEIGHT - 1)).toFixed(1);
}

/** The first and the last time below a chart. */
export function ends(spans, each) {
  const moment = momentOf(each);
  return h(
    "div",
    { class: "ends", "aria-hidden": "true" },
    spans.length ? [h("span", {}, moment(spans[0])), h("span", {}, moment(spans.at(-1)))] : null,
  );
}

/** The signs of a chart: `signs` as `[words, attributes]`. */
export function legend(signs) {
  return h(
    "ul",
    { class: "legend", "aria-hidden": "true" },
    signs.map(([words, attributes]) => h("li", {}, h("span", { class: "swatch", ...attributes }), words)),
  );
}

function column(one, parts, { x, width, top, title, stripes }) {
  let y = HEIGHT;
  const rects = parts.flatMap(([name, color]) => {
    const number = one[name] ?? 0;
    if (!number) return [];
    const height = Math.max(2, (number / top) * (HEIGHT - 4));
    y -= height;
    const place = { x: `${x + width * 0.12}%`, width: `${width * 0.76}%`, y: y.toFixed(1), height: height.toFixed(1) };
    const rect = h("rect", { class: "fill", "data-state": color, ...place });
    return color === "Error" ? [rect, h("rect", { class: "hatched", fill: `url(#${stripes})`, ...place })] : [rect];
  });
  return rects.length ? h("g", {}, h("title", {}, title(one)), rects) : null;
}

/** Stripes over values that need attention. */
export function hatch(id = "hatch") {
  return h(
    "pattern",
    { id, width: "6", height: "6", patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    h("rect", { class: "stripe", width: "2", height: "6" }),
  );
}

/** The next round number: 1, 2, 3 … 10, 20, 30 … */
export function ceiling(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((round) => round >= number);
}
