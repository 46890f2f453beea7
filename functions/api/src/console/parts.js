// Small pieces that several views use.

import { h } from "./dom.js";
import { relative } from "./time.js";
import { STATES } from "./words.js";

/** The state of an order or a step: a sign and a word. `undo` is for a step in compensation. */
export function state(name, undo) {
  const sign = undo && name === "Processed" ? "↺" : name === "Skipped" ? "–" : (STATES.find(([known]) => known === name)?.[1] ?? "·");
  const word = undo ? ({ Processed: "Undone", Processing: "Undoing", Pending: "To undo" }[name] ?? name) : name;
  return h(
    "span",
    { class: "state", "data-state": undo && name === "Processed" ? "Compensated" : name },
    h("span", { class: "sign", "aria-hidden": "true" }, sign),
    word,
  );
}

/** Who has taken an order on. */
export function taken({ Taken }) {
  return Taken ? h("span", { class: "badge", title: `since ${Taken.Since}` }, `taken on by ${Taken.By}`) : null;
}

/**
 * A table that is a list of cards on a narrow screen. `columns`: `{name, cell(row), kind?, isName?}`; `key(row)`
 * identifies a row. The roles are explicit, because a browser drops them if the table is shown as cards.
 */
export function table({ caption, columns, rows, key, empty, hideCaption }) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  const named = Math.max(
    0,
    columns.findIndex((column) => column.isName),
  );
  const cells = (row) =>
    columns.map((column, at) => {
      const content = column.cell(row);
      return h(
        at === named ? "th" : "td",
        {
          role: at === named ? "rowheader" : "cell",
          scope: at === named ? "row" : null,
          class: content === NOTHING ? "nothing" : column.kind,
          "data-label": column.name,
        },
        boxed(content),
      );
    });
  return h(
    "table",
    { role: "table" },
    h("caption", { class: hideCaption ? "unseen" : null }, caption),
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        columns.map((column) =>
          h("th", { role: "columnheader", scope: "col", class: column.kind }, column.head ?? column.name),
        ),
      ),
    ),
    h(
      "tbody",
      { role: "rowgroup" },
      rows.map((row) => h("tr", { role: "row", "data-key": key?.(row) }, cells(row))),
    ),
  );
}

/** On a card, a cell is one element beside its name. */
function boxed(content) {
  return Array.isArray(content) ? h("div", {}, content) : content;
}

// A card leaves out an empty cell.
const NOTHING = "–";

/** A section of a page. Its heading is its name. */
export function panel(id, title, ...content) {
  return h(
    "section",
    { class: "panel", id, "aria-labelledby": `${id}-head` },
    h("h2", { id: `${id}-head` }, title),
    content,
  );
}

/** The head of a page. It gets the focus when a page opens. */
export function heading(text, ...beside) {
  return h("div", { class: "head" }, h("h1", { tabindex: "-1", id: "head" }, text), beside);
}

/** A prominent line for the operator. `tone`: good, bad, wait, busy, undone. */
export function notice(tone, ...content) {
  return h("div", { class: "notice", "data-tone": tone }, content);
}

/** A form's field under its label. A screen reader reads `hint` with it. */
export function field({ id, label, hint, options, wide, ...attributes }) {
  const describedby = hint ? `${id}-hint` : null;
  const input = options
    ? h(
        "select",
        { id, name: id, "aria-describedby": describedby, onchange: attributes.onchange },
        options.map(([value, text]) => h("option", { value, selected: value === attributes.value }, text)),
      )
    : h("input", { id, name: id, autocomplete: "off", "aria-describedby": describedby, ...attributes });
  return h(
    "div",
    { class: wide ? "field wide" : "field" },
    h("label", { for: id }, label),
    input,
    hint ? h("p", { class: "hint", id: describedby }, hint) : null,
  );
}

/** A name and a value in a list of facts. Nothing if the value is not known. */
export function fact(name, value) {
  return value === null || value === undefined ? null : h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

/** `≥ 12` if the count is incomplete. */
export function count(number, atLeast) {
  return `${atLeast ? "≥ " : ""}${number.toLocaleString()}`;
}

/** `1 order`, `2 orders`. */
export function plural(number, word, atLeast) {
  return `${count(number, atLeast)} ${word}${number === 1 && !atLeast ? "" : "s"}`;
}

/** The state of a service in words, with a countdown to the next probe. */
export function health(service) {
  if (service.State === "Closed")
    return h(
      "span",
      { class: "state", "data-state": "Processed" },
      h("span", { class: "sign", "aria-hidden": "true" }, "✓"),
      "answers",
    );
  const out = { misconfigured: "is misconfigured", rejections: "rejects most steps" }[service.Reason] ?? "is failing";
  const word = service.State === "HalfOpen" ? "is probed" : out;
  return h(
    "span",
    { class: "state", "data-state": "Error" },
    h("span", { class: "sign", "aria-hidden": "true" }, "!"),
    word,
  );
}

/** The time of the next probe. */
export function probe(service) {
  if (service.State === "HalfOpen") return "a probe is under way";
  if (service.State !== "Open" || !service.Until) return null;
  if (Date.parse(service.Until) <= Date.now()) return "a probe is due";
  return [
    "next probe ",
    h("time", { datetime: service.Until, title: service.Until, "data-tick": "relative" }, relative(service.Until)),
  ];
}

/** A JSON value. The content may be too wide, so it scrolls, also with the keyboard. */
export function json(value, name) {
  return h("pre", { tabindex: "0", role: "region", "aria-label": name }, JSON.stringify(value, null, 2));
}
