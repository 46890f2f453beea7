// Exports the orders of the present filter to a file of this machine. It follows the pages of the list up to a bound.

import { Problem } from "./api.js";
import { listed, rowsOf } from "./columns.js";
import { open } from "./dialog.js";
import { announce, h } from "./dom.js";
import { count, notice, plural } from "./parts.js";

const ORDERS_MAX = 10_000;
// A search may have many short pages.
const PAGES_MAX = 1_000;
const PAGE = 100;

const FORMATS = {
  CSV: { type: "text/csv;charset=utf-8", ending: "csv", text: (tasks) => csv(rowsOf(tasks)) },
  NDJSON: {
    type: "application/x-ndjson",
    ending: "ndjson",
    text: (tasks) => tasks.map((task) => `${JSON.stringify(task)}\n`).join(""),
  },
};

/** Opens the dialog. `filter`: the parameters of the list, without a page. */
export function exportOrders(filter) {
  const it = { phase: "ask", tasks: [], error: null, hasMore: false, format: null };
  const stop = new AbortController();
  const begin = async (format) => {
    Object.assign(it, { phase: "reading", format });
    dialog.redraw();
    dialog.focusHead();
    try {
      await read(it, filter, stop.signal, () => dialog.redraw());
      save(FORMATS[format], it.tasks);
      it.phase = "done";
    } catch (error) {
      if (stop.signal.aborted) return;
      if (!(error instanceof Problem)) throw error;
      Object.assign(it, { phase: "failed", error: error.message });
    }
    announce(outcome(it));
    dialog.redraw();
    dialog.focusHead();
  };
  const dialog = open({
    title: "Export orders",
    onclose: () => stop.abort(),
    draw: () => draw(it, filter, begin, () => dialog.close()),
  });
}

async function read(it, filter, signal, progressed) {
  let cursor = "";
  for (let page = 0; page < PAGES_MAX && it.tasks.length < ORDERS_MAX; page += 1) {
    const { Orders, NextCursor } = await listed({ ...filter, limit: PAGE, cursor }, true, signal);
    it.tasks.push(...Orders);
    it.hasMore = Boolean(NextCursor);
    progressed();
    if (!NextCursor) return;
    cursor = NextCursor;
  }
}

function save({ type, ending, text }, tasks) {
  const address = URL.createObjectURL(new Blob([text(tasks)], { type }));
  const name = `orders-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.${ending}`;
  h("a", { href: address, download: name }).click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Rows as CSV (RFC 4180). A cell never begins a formula: a spreadsheet takes one with an apostrophe as text. */
function csv(rows) {
  const cell = (value) => {
    const text = String(value);
    const harmless = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function draw(it, filter, begin, close) {
  const leave = (words, isMain) =>
    h("button", { type: "button", "data-key": "leave", class: isMain ? "primary" : null, onclick: close }, words);
  const begins = (format) =>
    h("button", { type: "button", "data-key": format, class: "primary", onclick: () => begin(format) }, `Export as ${format}`);
  const parts = {
    ask: () => [
      h("p", {}, described(filter)),
      h(
        "p",
        { class: "quiet" },
        `At most ${count(ORDERS_MAX)} orders, newest first, with times in UTC. `,
        "CSV has a row for each order, NDJSON a line with the API’s own JSON.",
      ),
      h("div", { class: "buttons" }, Object.keys(FORMATS).map(begins), leave("Leave it")),
    ],
    reading: () => [
      h("p", { id: "export-progress" }, `${plural(it.tasks.length, "order")} read…`),
      h("progress", { max: ORDERS_MAX, value: it.tasks.length, class: "progress", "aria-labelledby": "export-progress" }),
      h("div", { class: "buttons" }, leave("Cancel")),
    ],
    ended: () => [
      notice(it.phase === "done" ? "good" : "bad", h("p", { id: "dialog-result" }, outcome(it))),
      h("div", { class: "buttons" }, leave("Close", true)),
    ],
  };
  return h("div", { "data-key": it.phase }, (parts[it.phase] ?? parts.ended)());
}

function outcome({ phase, tasks, hasMore, format, error }) {
  if (phase === "failed") return `Nothing was saved: ${error}. Start the export again.`;
  const more = hasMore ? " There are more: choose a narrower filter, such as a time." : "";
  return `${plural(tasks.length, "order")} saved as ${format}.${more}`;
}

function described(filter) {
  const parts = Object.entries(filter).filter(([, value]) => value);
  return parts.length ? `Orders with ${parts.map(([name, value]) => `${name} ${value}`).join(", ")}.` : "All orders.";
}
