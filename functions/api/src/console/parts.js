// Small pieces that several views use.

import { h } from "./dom.js";
import { relative } from "./time.js";
import { STATES } from "./words.js";

/** The state of an order or a step: a sign and a word. `undo` for a step that is taken back. */
export function state(name, undo) {
  const sign = undo && name === "Processed" ? "↺" : (STATES.find(([known]) => known === name)?.[1] ?? "·");
  const word = undo ? ({ Processed: "Undone", Processing: "Undoing", Pending: "To undo" }[name] ?? name) : name;
  return h(
    "span",
    { class: "state", "data-state": undo && name === "Processed" ? "Compensated" : name },
    h("span", { class: "sign", "aria-hidden": "true" }, sign),
    word,
  );
}

/**
 * A table that is a list of cards on a narrow screen. `columns`: `{name, cell(row), kind?, isName?}`; `key(row)` says
 * which row is which. The roles are written out because a browser forgets them where the table is shown as cards.
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

/** On a card a cell is one thing beside its name. */
function boxed(content) {
  return Array.isArray(content) ? h("div", {}, content) : content;
}

// On a card there is no need to say that there is nothing.
const NOTHING = "–";

/** A part of a page with a heading, which is its name. */
export function panel(id, title, ...content) {
  return h(
    "section",
    { class: "panel", id, "aria-labelledby": `${id}-head` },
    h("h2", { id: `${id}-head` }, title),
    content,
  );
}

/** The head of a page. Focus goes to it when a page is opened. */
export function heading(text, ...beside) {
  return h("div", { class: "head" }, h("h1", { tabindex: "-1", id: "head" }, text), beside);
}

/** A line that an operator should not overlook. `tone`: good, bad, wait, busy, undone. */
export function notice(tone, ...content) {
  return h("div", { class: "notice", "data-tone": tone }, content);
}

/** A form's field under its label. `hint` is read with it. */
export function field({ id, label, hint, options, wide, ...attributes }) {
  const describedby = hint ? `${id}-hint` : null;
  const input = options
    ? h(
        "select",
        { id, name: id, "aria-describedby": describedby },
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

/** `≥ 12` where the count was not brought to its end. */
export function count(number, atLeast) {
  return `${atLeast ? "≥ " : ""}${number.toLocaleString()}`;
}

/** `1 order`, `2 orders`. */
export function plural(number, word, atLeast) {
  return `${count(number, atLeast)} ${word}${number === 1 && !atLeast ? "" : "s"}`;
}

/** A link to an order, with the beginning of its id where the place is small. */
export function orderLink(id, isShort) {
  return h(
    "a",
    {
      class: "id",
      href: `#/order/${encodeURIComponent(id)}`,
      title: isShort ? id : null,
      "aria-label": isShort ? `order ${id}` : null,
    },
    isShort ? `${id.slice(0, 8)}…` : id,
  );
}

/** How a service is, in words, with the time to the next probe counted down. */
export function health(service) {
  if (service.State === "Closed")
    return h(
      "span",
      { class: "state", "data-state": "Processed" },
      h("span", { class: "sign", "aria-hidden": "true" }, "✓"),
      "answers",
    );
  const word = service.State === "HalfOpen" ? "is probed" : "is failing";
  return h(
    "span",
    { class: "state", "data-state": "Error" },
    h("span", { class: "sign", "aria-hidden": "true" }, "!"),
    word,
  );
}

/** When the next probe goes out. */
export function probe(service) {
  if (service.State === "HalfOpen") return "a probe is under way";
  if (service.State !== "Open" || !service.Until) return null;
  if (Date.parse(service.Until) <= Date.now()) return "a probe is due";
  return [
    "next probe ",
    h("time", { datetime: service.Until, title: service.Until, "data-tick": "relative" }, relative(service.Until)),
  ];
}
