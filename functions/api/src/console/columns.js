// The columns of the list of orders: which there are, which are shown, and how the rows of a page are sorted. The choice
// of columns is kept in the browser.

import { get, withQuery } from "./api.js";
import { h } from "./dom.js";
import { groups, isUndoing, summed } from "./lines.js";
import { field, plural } from "./parts.js";
import { ms, when } from "./time.js";
import { inBrief } from "./words.js";
import { workflowLink } from "./workflows.js";

const KEPT = "stepwarden.columns";
const CORRELATION = "/CorrelationID";

/** A column: `id`, `name`, `cell(task, services)`, `text(task)` for a file, `isShown` without a choice, and `ofIndex` if
 * the list has to be asked for it. */
const COLUMNS = [
  {
    id: "correlation",
    name: "Correlation id",
    kind: "text",
    ofIndex: true,
    cell: (task) => task.Index?.[CORRELATION] ?? "–",
  },
  { id: "workflow", name: "Workflow", kind: "still", cell: (task) => workflowLink(task.Workflow, task.WorkflowVersion) },
  { id: "taken", name: "Taken on by", kind: "text", cell: (task) => task.Taken?.By ?? "–" },
  { id: "reason", name: "Reason", kind: "text", cell: ({ Reason }) => (Reason ? cause(Reason) : "–") },
  { id: "error", name: "Last error", kind: "text long", cell: (task) => errorText(task) ?? "–" },
  {
    id: "waits",
    name: "What it waits for",
    kind: "text long",
    isShown: true,
    cell: (task, services) => inBrief(task, services) || "–",
  },
  { id: "steps", name: "Steps", isShown: true, cell: progress },
  { id: "submitted", name: "Submitted", isShown: true, cell: (task) => when(task.SubmittedAt, "brief") },
  { id: "changed", name: "Changed", isShown: true, cell: (task) => when(task.UpdatedAt, "brief") },
  // One for each member that a workflow declares: see `shownColumns`.
  { id: "members", name: "Indexed members", ofIndex: true },
];

// Each column of a file, after the id. The members of the index follow.
const TEXTS = [
  ["State", (task) => task.ProcessState],
  ["CorrelationID", (task) => task.Index?.[CORRELATION]],
  ["Workflow", (task) => `${task.Workflow}/${task.WorkflowVersion}`],
  ["TakenBy", (task) => task.Taken?.By],
  ["PausedBy", (task) => task.Paused?.By],
  ["ReasonCode", (task) => task.Reason?.Code],
  ["ReasonStep", (task) => task.Reason?.Step],
  ["ReasonMessage", (task) => task.Reason?.Message],
  ["LastError", errorText],
  ["SubmittedAt", (task) => task.SubmittedAt],
  ["UpdatedAt", (task) => task.UpdatedAt],
];

const SORTS = [
  ["", "Newest first"],
  ["SubmittedAt", "Oldest first"],
  ["-UpdatedAt", "Changed last first"],
  ["UpdatedAt", "Unchanged for longest first"],
];

let sort = "";
let chosen = kept();

function kept() {
  const usual = COLUMNS.filter(({ isShown }) => isShown).map(({ id }) => id);
  try {
    const stored = JSON.parse(localStorage.getItem(KEPT));
    return new Set(Array.isArray(stored) ? stored : usual);
  } catch {
    return new Set(usual);
  }
}

function keep() {
  try {
    localStorage.setItem(KEPT, JSON.stringify([...chosen]));
  } catch {
    // The choice is good for as long as the page is open.
  }
}

/** Whether a chosen column is one of the index. */
export function wantsIndex() {
  return COLUMNS.some(({ id, ofIndex }) => ofIndex && chosen.has(id));
}

/** A page of the list. `isWithIndex`: with what its orders are found by. */
export function listed(parameters, isWithIndex, signal) {
  return get(withQuery("orders", isWithIndex ? { ...parameters, with: "index" } : parameters), signal);
}

/** The chosen columns, for these orders. */
export function shownColumns(tasks, services) {
  return COLUMNS.filter(({ id }) => chosen.has(id)).flatMap((column) =>
    column.id === "members"
      ? members(tasks).map((place) => ({ name: place, kind: "text", cell: (task) => task.Index?.[place] ?? "–" }))
      : { ...column, cell: (task) => column.cell(task, services) },
  );
}

/** The fields that choose columns and order. `changed`: the list has to be read again. */
export function choice({ redraw, changed }) {
  const toggle = (id, isOn) => {
    const before = wantsIndex();
    chosen[isOn ? "add" : "delete"](id);
    keep();
    redraw();
    if (wantsIndex() !== before) changed();
  };
  return [
    h(
      "details",
      { class: "more", id: "columns" },
      h("summary", {}, "Columns"),
      h(
        "div",
        { class: "ticks", role: "group", "aria-label": "Columns" },
        COLUMNS.map(({ id, name }) =>
          h(
            "label",
            { class: "tick", "data-key": `column ${id}` },
            h("input", {
              type: "checkbox",
              checked: chosen.has(id),
              onchange: (event) => toggle(id, event.target.checked),
            }),
            ` ${name}`,
          ),
        ),
      ),
    ),
    field({
      id: "sort",
      label: "Sort this page",
      options: SORTS,
      value: sort,
      onchange: (event) => {
        sort = event.target.value;
        redraw();
      },
    }),
  ];
}

/** The orders of a page in the chosen order. A time that is not known comes last. */
export function sorted(tasks) {
  if (!sort) return tasks;
  const [sign, member] = sort.startsWith("-") ? [-1, sort.slice(1)] : [1, sort];
  const at = (task) => (task[member] ? sign * ms(task[member]) : Number.MAX_SAFE_INTEGER);
  return [...tasks].sort((one, other) => at(one) - at(other));
}

/** The words for the present order. */
export function sortedHow() {
  return SORTS.find(([name]) => name === sort)[1].toLowerCase();
}

/** The orders as rows of texts, the first with the names. */
export function rowsOf(tasks) {
  const places = members(tasks);
  const row = (task) => [
    task.OrderID,
    ...TEXTS.map(([, text]) => text(task) ?? ""),
    ...places.map((place) => task.Index?.[place] ?? ""),
  ];
  return [["OrderID", ...TEXTS.map(([name]) => name), ...places], ...tasks.map(row)];
}

function members(tasks) {
  const places = new Set(tasks.flatMap((task) => Object.keys(task.Index ?? {})));
  places.delete(CORRELATION);
  return [...places].sort();
}

function cause({ Code, Step }) {
  return Step ? `${Code} at ${Step}` : Code;
}

/** The last failure of any step. */
function errorText({ Steps }) {
  const errors = Steps.filter((step) => step.LastError).sort((one, other) => ms(other.LastError.At) - ms(one.LastError.At));
  if (!errors.length) return undefined;
  const [{ Name, LastError }] = errors;
  return `${Name}: ${LastError.Message} (${LastError.Code})`;
}

function progress(task) {
  const steps = groups(task.Steps).map(summed);
  const undone = steps.filter((step) => step.Direction === "Undo" && step.ProcessState === "Processed").length;
  const done = steps.filter((step) => step.Direction === "Forward" && step.ProcessState === "Processed").length;
  const skipped = steps.filter((step) => step.ProcessState === "Skipped").length;
  const dropped = task.Lines?.Dropped.length;
  const words = isUndoing(task)
    ? `${undone} undone`
    : `${done} of ${steps.length - skipped} done${skipped ? `, ${skipped} skipped` : ""}${dropped ? `, ${plural(dropped, "line")} dropped` : ""}`;
  return h(
    "span",
    { class: "dots" },
    h(
      "span",
      { class: "signs", "aria-hidden": "true" },
      steps.map((step) =>
        h("i", {
          "data-state":
            step.Direction === "Undo" && step.ProcessState === "Processed" ? "Compensated" : step.ProcessState,
        }),
      ),
    ),
    ` ${words}`,
  );
}
