// One order: its situation, the allowed actions, its timeline, its steps, its history, and its document.

import { buttons } from "./actions.js";
import { forget, get, getIfThere, getOnce } from "./api.js";
import { fragment, h } from "./dom.js";
import { copyButton, orderLink, shortId } from "./ids.js";
import { counts, groups, sorted, summed } from "./lines.js";
import { fact, heading, json, panel, state, table, taken } from "./parts.js";
import { serviceLink } from "./services.js";
import { timeline } from "./timeline.js";
import { length, when } from "./time.js";
import { situation } from "./words.js";
import { workflowLink } from "./workflows.js";

// Up to this number, all elements are shown at once. Of more, this number is shown once they are asked for, then the rest.
const FEW = 5;
const FIRST = 20;

export const order = {
  name: "order",
  title: ({ id }) => `Order ${shortId(id)}`,
  async load({ id }, signal) {
    const path = `orders/${encodeURIComponent(id)}`;
    let [task, health, document] = await Promise.all([
      get(path, signal),
      getIfThere("services", signal),
      getOnce(`${path}/document`, signal),
    ]);
    // It was erased since the document was read.
    if (task.ErasedAt && Object.keys(document?.Document ?? {}).length) {
      forget(`${path}/document`);
      document = await getOnce(`${path}/document`, signal);
    }
    return { task, services: health?.Services ?? [], document };
  },
  render({ task, services, document }, { changed }) {
    return fragment(
      heading(
        h("span", { class: "id" }, task.OrderID),
        h(
          "p",
          { class: "beside" },
          copyButton(task.OrderID),
          state(task.ProcessState),
          task.Paused ? h("span", { class: "badge" }, "paused") : null,
          taken(task),
          task.Priority === "high" ? h("span", { class: "badge" }, "high priority") : null,
        ),
      ),
      standing(task, services, changed),
      panel("way", "Its way", timeline(task)),
      panel("steps", "Steps", steps(task)),
      panel("history", "Who did what", history(task)),
      panel("holds", "What it holds", holds(task, document, changed)),
    );
  },
};

function standing(task, services, changed) {
  const { tone, head, text, todo } = situation(task, services);
  return h(
    "section",
    { class: "panel standing", "data-tone": tone, "aria-labelledby": "standing-head", id: "standing" },
    h("h2", { id: "standing-head" }, head),
    text.filter(Boolean).map((line) => h("p", {}, line)),
    todo ? h("p", { class: "todo" }, h("strong", {}, "What to do: "), todo) : null,
    h("div", { class: "buttons", id: "actions" }, buttons(task, changed)),
  );
}

function steps(task) {
  const columns = [
    {
      name: "Step",
      isName: true,
      cell: (step) => h("span", {}, step.Name, h("span", { class: "quiet block" }, byWhom(step))),
    },
    { name: "State", cell: stateOf },
    { name: "Attempts", kind: "num", cell: (step) => step.Attempt },
    { name: "Failures", kind: "num", cell: (step) => step.FailureCount },
    { name: "Began", cell: (step) => when(step.StartedAt, "exact") },
    { name: "Ended", cell: ended },
    { name: "Next", cell: next },
    { name: "Last error", kind: "text", cell: lastError },
  ];
  const rows = groups(task.Steps).map(summed);
  return [
    table({
      caption: "The order's steps",
      hideCaption: true,
      rows,
      key: (step) => step.Name,
      empty: "It has no steps.",
      columns,
    }),
    elements(task, columns),
  ];
}

/** The elements of each group, below the steps. More than a few are shown on demand. */
function elements(task, columns) {
  return groups(task.Steps)
    .filter(({ isLines }) => isLines)
    .map(({ name, steps }) => {
      const all = sorted(steps);
      const rows = (caption, some) => table({ caption, hideCaption: true, rows: some, key: (step) => step.Name, columns });
      const rest = all.slice(FIRST);
      return h(
        "details",
        { class: "elements", "data-key": `elements ${name}`, open: steps.length <= FEW },
        h("summary", {}, `${name}: ${counts(steps)}`),
        rows(`The elements of ${name}, the failed and the slowest first`, all.slice(0, FIRST)),
        rest.length
          ? h(
              "details",
              { class: "elements", "data-key": `rest ${name}` },
              h("summary", {}, `The other ${rest.length}`),
              rows(`The other elements of ${name}`, rest),
            )
          : null,
      );
    });
}

function stateOf(step) {
  const more = step.Counts ?? (step.Dropped ? "dropped" : null);
  const own = state(step.ProcessState, step.Direction === "Undo");
  return more ? h("span", {}, own, h("span", { class: "quiet block" }, more)) : own;
}

/** The output of a step; of one that goes through an array, those of its elements by their names. */
function outputOf({ name, steps, isLines }) {
  const done = steps.filter((step) => step.Output !== undefined);
  if (!done.length) return [];
  if (!isLines) return [{ name, output: done[0].Output }];
  return [{ name, output: Object.fromEntries(done.map((step) => [step.Name.slice(name.length + 1), step.Output])) }];
}

function byWhom(step) {
  if (step.Child) return h("span", {}, "order ", orderLink(step.Child));
  if (step.Agent === "orders") return "makes an order";
  if (!step.Approval) return serviceLink(step.Agent);
  return step.Approval.Role ? `approval by ${step.Approval.Role}` : "approval";
}

function ended(step) {
  const call = step.CallMs === undefined ? null : h("span", { class: "quiet block" }, `call ${length(step.CallMs)}`);
  return h("span", {}, when(step.FinishedAt, "exact"), call);
}

function next(step) {
  if (step.Approval && step.CompleteBy) return h("span", {}, "decision by ", when(step.CompleteBy));
  if (step.CompleteBy) return h("span", {}, "answer by ", when(step.CompleteBy));
  if (step.Attempt && step.WaitsUntil) return h("span", {}, "not before ", when(step.WaitsUntil));
  if (step.NotBefore) return h("span", {}, "not before ", when(step.NotBefore));
  return "–";
}

function lastError(step) {
  const error = step.LastError;
  if (!error) return "–";
  return h(
    "span",
    {},
    error.Message,
    h("span", { class: "quiet block" }, `${error.Code}, attempt ${error.Attempt}, `, when(error.At, "clock")),
  );
}

function history(task) {
  // Two lines may have the same time and word. Their positions distinguish them.
  const rows = (task.History ?? []).map((line, place) => ({ ...line, place })).reverse();
  return table({
    caption: "What happened, the last first",
    hideCaption: true,
    rows,
    empty: "Nothing is known.",
    key: (line) => `${line.At} ${line.What} ${line.place}`,
    columns: [
      { name: "When", cell: (line) => when(line.At, "exact") },
      { name: "What", isName: true, cell: (line) => line.What },
      { name: "Who", kind: "text who", cell: (line) => (line.Caller ? `${line.Who} [${line.Caller}]` : line.Who) },
      { name: "Why", kind: "text", cell: (line) => [line.Bulk && `bulk ${line.Bulk}`, line.Why].filter(Boolean).join(": ") || "–" },
    ],
  });
}

function holds(task, document, changed) {
  const outputs = groups(task.Steps).flatMap(outputOf);
  return [
    h(
      "dl",
      { class: "facts" },
      fact("Version", task.Version),
      fact("Made by", task.Parent && h("span", {}, orderLink(task.Parent.OrderID), ` for ${task.Parent.Step}`)),
      fact("Erased", task.ErasedAt && when(task.ErasedAt, "exact")),
      fact("Workflow", workflowLink(task.Workflow, task.WorkflowVersion)),
      document
        ? [
            fact("Submitted", when(document.SubmittedAt)),
            fact("Submitter", document.Submitter),
            fact("Correlation id", document.CorrelationID),
            fact("Reply channel", document.ReplyChannel),
            fact("Again of", document.AgainOf && orderLink(document.AgainOf.OrderID)),
            fact("Posted again as", document.Again && orderLink(document.Again)),
          ]
        : null,
    ),
    document
      ? [h("h3", {}, "Document"), json(document.Document, "The document")]
      : h("p", { class: "quiet" }, "The document cannot be shown."),
    outputs.map(({ name, output }) => [
      h("h3", { "data-key": `output ${name}` }, `Output of ${name}`),
      json(output, `The output of ${name}`),
    ]),
    h("div", { class: "buttons", id: "erasing" }, buttons(task, changed, ["erase"])),
  ];
}
