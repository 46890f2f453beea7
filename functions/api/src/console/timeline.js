// An order's history as rows on a time axis: one row for the order and one for each step. A row shows attempts, waits,
// back-off and compensation. The order's history has at most the last 50 transitions.

import { h } from "./dom.js";
import { groups, isUndoing, summed } from "./lines.js";
import { hatch } from "./pictures.js";
import { clock, length, ms, precise } from "./time.js";

// The end of an attempt by the kind of its history line: its look, its words, and whether a wait follows.
const ENDS = {
  Approved: ["done", "approved", false],
  Processed: ["done", "done", false],
  Rejected: ["failed", "rejected", false],
  GivenUp: ["failed", "given up", false],
  Skipped: ["failed", "rejected, and skipped", false],
  Deferred: ["put-off", "put off", true],
  Expired: ["failed", "not done in time", true],
};
const HEIGHT = 18;
// The smallest visible share of the picture, and the limit above which long waits are shortened.
const SHARE_MIN = 0.012;
const FLATTEN = 0.45;

/** The timeline of a task, as a part of the page. */
export function timeline(task) {
  const now = Date.now();
  const { lanes, order, from, to } = read(task, now);
  const place = scale(
    [from, to, ...[...lanes.values(), order].flatMap((lane) => lane.flatMap((part) => [part.from, part.to]))],
    from,
    to,
  );
  const rows = [
    h(
      "li",
      { "data-key": "order" },
      label("The order", `${task.Workflow}, version ${task.WorkflowVersion}`),
      picture("The order", order, place, from),
      h("p", { class: "sum" }, length(to - from)),
    ),
  ];
  for (const group of groups(task.Steps)) {
    const parts = group.steps.flatMap((step) => lanes.get(step.Name) ?? []).sort((one, other) => one.from - other.from);
    const step = summed(group);
    rows.push(
      h(
        "li",
        { "data-key": step.Name },
        label(step.Name, step.Agent),
        picture(step.Name, parts, place, from),
        h("p", { class: "sum" }, step.Counts ?? summary(step)),
      ),
    );
  }
  return h(
    "div",
    { class: "timeline" },
    h("svg", { width: "0", height: "0", "aria-hidden": "true", focusable: "false" }, h("defs", {}, hatch())),
    h("ol", { class: "lanes" }, rows),
    h(
      "p",
      { class: "axis-ends", "aria-hidden": "true" },
      h("span", {}, precise(from)),
      h("span", {}, isOver(task) ? precise(to) : "now"),
    ),
    h(
      "ul",
      { class: "legend", "aria-hidden": "true" },
      [
        ["attempt", "attempt"],
        ["put-off", "put off"],
        ["failed", "failed"],
        ["undo", "undo"],
        ["wait", "waits"],
        ["operator", "waits for an operator"],
      ].map(([kind, word]) => h("li", {}, h("span", { class: "swatch", "data-kind": kind }), word)),
    ),
    h("p", { class: "quiet" }, "Time runs from left to right; long waits are drawn shorter than they are."),
  );
}

function isOver(task) {
  return ["Processed", "Compensated", "Closed"].includes(task.ProcessState);
}

/** The history as parts `{kind, from, to, text, attempt?}`, by step, and the parts of the order itself. */
export function read(task, now) {
  const history = task.History ?? [];
  const from = ms(task.SubmittedAt ?? history[0]?.At ?? now);
  const last = history.length ? ms(history.at(-1).At) : from;
  const to = isOver(task) ? Math.max(last, from + 1) : Math.max(now, last, from + 1);
  const lanes = new Map(task.Steps.map((step) => [step.Name, []]));
  const open = new Map();
  const order = [];
  let phase = { kind: "wait", from, text: "accepted" };
  const turn = (at, kind, text) => {
    order.push({ ...phase, to: at });
    phase = { kind, from: at, text };
  };
  for (const line of history) {
    const { At, Kind, State, Why, Who } = line;
    const at = ms(At);
    if (Kind === "Settled") {
      turn(at, line.Direction === "Undo" ? "undo" : "attempt", `${line.Step} settled by ${Who}: ${Why ?? ""}`);
    } else if (Kind === "Dropped") {
      const isOfLine = (name) => name.split("/")[1] === line.Step.split("/")[1];
      for (const [name, parts] of lanes) if (isOfLine(name)) leave(parts, open, name, at);
    } else if (lanes.has(line.Step)) {
      if (order.length === 0 && Kind === "Claimed" && phase.text === "accepted")
        turn(at, "attempt", "steps are carried out");
      ofStep(lanes.get(line.Step), open, line, at, task.Steps.find((one) => one.Name === line.Step).LastError);
    } else if (Kind === "Entered" && State === "Error") {
      turn(at, "operator", `Error: ${Why ?? ""}`);
    } else if (Kind === "Entered" && State === "Compensating") {
      for (const [name, parts] of lanes) leave(parts, open, name, at);
      turn(at, "undo", `undone: ${Why ?? ""}`);
    } else if (Kind === "Cancelled") {
      turn(at, "undo", `cancelled by ${Who}: ${Why ?? ""}`);
    } else if (Kind === "Resubmitted" || Kind === "Resumed") {
      const undoing = isUndoing(task);
      turn(at, undoing ? "undo" : "attempt", `${Kind.toLowerCase()} by ${Who}: ${Why ?? ""}`);
    } else if (Kind === "Paused") {
      turn(at, "operator", `paused by ${Who}: ${Why ?? ""}`);
    }
  }
  order.push({ ...phase, to });
  for (const step of task.Steps) close(step, lanes.get(step.Name), open.get(step.Name), to, now);
  return { lanes, order: order.filter((part) => part.to > part.from), from, to };
}

function ofStep(parts, open, { Kind, Step: name, Direction, Attempt: attempt }, at, error) {
  const undo = Direction === "Undo";
  const before = open.get(name);
  if (Kind === "Claimed") {
    if (before?.kind === "wait") parts.push({ ...before, to: at });
    open.set(name, { kind: undo ? "undo" : "attempt", from: at, attempt, undo });
    return;
  }
  // A newer API may send other kinds.
  if (!(Kind in ENDS)) return;
  // A step that needs no call has no attempt.
  if (Kind === "Skipped" && !before) return;
  const [outcome, words, waits] = ENDS[Kind];
  // Of many deferred attempts in a row, the history keeps only the last, without its start.
  const began =
    before && before.kind !== "wait"
      ? before
      : { kind: undo ? "undo" : "attempt", from: before?.from ?? at, attempt };
  if (before?.kind === "wait") parts.push({ ...before, to: at });
  const start = before?.kind === "wait" ? at : began.from;
  const kind = outcome === "done" ? began.kind : outcome;
  const why = kind === "failed" && error?.Attempt === began.attempt ? `: ${error.Message} (${error.Code})` : "";
  parts.push({
    ...began,
    kind,
    from: start,
    to: at,
    text: `${undo ? "undo, " : ""}attempt ${began.attempt}: ${words}${why}`,
  });
  if (waits) open.set(name, { kind: "wait", from: at, text: "waits before it is tried again" });
  else open.delete(name);
}

/** The order began its compensation while an attempt was in flight or waited. */
function leave(parts, open, name, at) {
  const before = open.get(name);
  if (!before) return;
  parts.push({
    ...before,
    kind: before.kind === "wait" ? "wait" : "failed",
    to: at,
    text: before.text ?? `attempt ${before.attempt}: not waited for any more`,
  });
  open.delete(name);
}

/** Parts in flight and waits extend to now. */
function close(step, parts, before, to, now) {
  if (!before) return;
  const until =
    before.kind === "wait" && step.NotBefore && ms(step.NotBefore) > now ? `, until ${clock(step.NotBefore)}` : "";
  const text =
    before.kind === "wait" ? `waits${until}` : `${before.undo ? "undo, " : ""}attempt ${before.attempt}: under way`;
  parts.push({ ...before, to, text, isOpen: true });
}

/** The position of a time, as a share from 0 to 1. Every gap has a minimum, and a long wait has a maximum. */
export function scale(times, from, to) {
  const points = [...new Set([from, ...times.filter((time) => time >= from && time <= to), to])].sort((a, b) => a - b);
  const all = Math.max(1, to - from);
  const widths = points.slice(1).map((time, at) => Math.max(SHARE_MIN, ((time - points[at]) / all) ** FLATTEN));
  const sum = widths.reduce((total, width) => total + width, 0) || 1;
  const places = new Map([[points[0], 0]]);
  let place = 0;
  widths.forEach((width, at) => {
    place += width / sum;
    places.set(points[at + 1], place);
  });
  return (time) => places.get(Math.min(to, Math.max(from, time))) ?? 1;
}

function label(name, beside) {
  return h("p", { class: "lane-name" }, h("strong", {}, name), " ", h("span", { class: "quiet" }, beside));
}

function picture(name, parts, place, from) {
  const told = parts
    .slice(0, 12)
    .map((part) => `${part.text}, after ${length(part.from - from)}, for ${length(part.to - part.from)}`);
  const more = parts.length > told.length ? `; and ${parts.length - told.length} more` : "";
  return h(
    "svg",
    {
      class: "lane",
      width: "100%",
      height: String(HEIGHT),
      role: "img",
      "aria-label": told.length ? `${name}: ${told.join("; ")}${more}.` : `${name}: nothing yet.`,
    },
    h("rect", { class: "ground", width: "100%", height: String(HEIGHT) }),
    parts.map((part) => drawn(part, place, from)),
  );
}

function drawn(part, place, from) {
  const x = place(part.from) * 100;
  const width = Math.max(0.6, place(part.to) * 100 - x);
  const thin = part.kind === "wait";
  const box = {
    x: `${Math.min(x, 99.4).toFixed(2)}%`,
    width: `${width.toFixed(2)}%`,
    y: thin ? HEIGHT / 2 - 2 : 1,
    height: thin ? 4 : HEIGHT - 2,
  };
  const title = h(
    "title",
    {},
    `${precise(part.from)} (after ${length(part.from - from)}), for ${length(part.to - part.from)}: ${part.text}`,
  );
  const hatched = part.kind === "failed" || part.kind === "operator";
  return h(
    "g",
    {},
    title,
    h("rect", { class: "part", "data-kind": part.kind, "data-open": part.isOpen ? "yes" : null, rx: "2", ...box }),
    hatched ? h("rect", { class: "hatched", fill: "url(#hatch)", ...box }) : null,
  );
}

function summary(step) {
  if (step.Attempt === 0) return "not begun";
  const attempts = step.Attempt === 1 ? "1 attempt" : `${step.Attempt} attempts`;
  if (step.StartedAt && step.FinishedAt) return `${length(ms(step.FinishedAt) - ms(step.StartedAt))} · ${attempts}`;
  return attempts;
}
