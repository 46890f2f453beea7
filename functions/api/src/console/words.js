// The words of the console: states, actions and the consequences of an action. The API describes an order's wait and
// the operator's remedy.

import { isUndoing } from "./lines.js";
import { clock } from "./time.js";

/** The states in the order of an order's life. Each has a sign, so that colour is never the only sign. */
export const STATES = [
  ["Pending", "○", "accepted, not begun"],
  ["Processing", "◐", "steps are carried out"],
  ["Processed", "✓", "carried out whole"],
  ["Error", "!", "waits for an operator"],
  ["Compensating", "↶", "being undone"],
  ["Compensated", "↺", "its steps are undone"],
  ["Closed", "✕", "ended by an operator as it was"],
];

/** The codes of `Reason`. */
export const REASONS = ["exhausted", "rejected", "compensation-failed", "dead-letter", "hop-limit", "late", "cancelled", "closed"];

/** What a job does with each order: the label of the choice, the verb of a button, and what is said after the orders. */
export const JOB_ACTIONS = {
  Resubmit: { label: "Resubmit", verb: "Resubmit" },
  Cancel: { label: "Cancel and undo", verb: "Cancel" },
  Settle: { label: "Settle a step", verb: "Settle the step of" },
  Close: { label: "Close as they are", verb: "Close" },
  Again: { label: "Post again (compensated orders)", verb: "Post", after: " again" },
};

/** The outcomes of a dead letter, in words. */
export const OUTCOMES = {
  Stored: "its order was not stored; it is now, in Error",
  Held: "its order needs it, and is in Error",
  Stale: "its order does not need it any more",
  NoOrder: "there is no such order",
  LostCommand: "an operator's command was not carried out: give it again",
  Unreadable: "it is unreadable",
  Refused: "its sender may not send it, so nothing changed",
};

/** Whether an action is allowed. The API sends the list with the order. An erase is no operator's action, so it is not in
 * that list. */
export function allows(task, action) {
  if (action === "erase") return ["Processed", "Compensated", "Closed"].includes(task.ProcessState) && !task.ErasedAt;
  return task.Actions.includes(action);
}

/** An operator's actions: label of the button, title of the dialog, and the word for the result. An action of a step is for
 * one order at a time. */
export const ACTIONS = {
  approve: { label: "Approve", title: "Approve the order", done: "approved", ofOne: true },
  reject: { label: "Reject", title: "Reject the order", done: "rejected", danger: true, ofOne: true },
  resubmit: { label: "Resubmit", title: "Resubmit the order", done: "resubmitted" },
  cancel: { label: "Cancel order", title: "Cancel the order and undo it", done: "cancelled", danger: true },
  pause: { label: "Pause", title: "Pause the order", done: "paused" },
  resume: { label: "Resume", title: "Let the order go on", done: "resumed" },
  settle: { label: "Settle step", title: "Settle a step by hand", done: "settled", ofOne: true },
  note: { label: "Note", title: "Write a note on the order", done: "noted", ofOne: true },
  close: { label: "Close order", title: "Close the order as it is", done: "closed", danger: true },
  erase: { label: "Erase", title: "Erase the order's personal data", done: "erased", danger: true, ofOne: true },
  again: { label: "Post again", title: "Post the order again", done: "posted again" },
};

const TONES = { Processed: "good", Compensated: "undone", Closed: "still", Error: "bad" };

/** The situation of an order: `{tone, head, text: [..], todo}`. The words are those of the API about the order and about
 * the services that its open steps need. `services` may be empty if they are not known. */
export function situation(task, services) {
  const { Head, Text, ToDo, Waits } = task.Situation;
  const outages = failing(task, services);
  return {
    tone: TONES[task.ProcessState] ?? (Waits || outages.length ? "wait" : "busy"),
    head: local(Head),
    text: [Text, ...outages.map((service) => service.Text)].filter(Boolean).map(local),
    todo: [...outages.map((service) => service.ToDo), alone(task, services), ToDo].find(Boolean) ?? null,
  };
}

/** The steps that may wait for a service. */
function open(task) {
  if (task.ProcessState in TONES || task.Paused) return [];
  return task.Steps.filter(
    (step) => step.ProcessState === "Processing" || (step.ProcessState === "Pending" && (step.NotBefore || (step.Attempt && step.WaitsUntil))),
  );
}

/** What to do where calls of this order alone fail for long: the service has no failure in a row. As in the CLI. */
function alone(task, services) {
  for (const { Agent, LastError } of open(task)) {
    const isWell = services.some((one) => one.Service === Agent && one.State === "Closed" && !one.FailuresInARow);
    const problem = LastError?.Code === "retrying" ? LastError.Message : LastError?.Message.split("; the last call: ")[1];
    if (isWell && problem && Date.now() - Date.parse(LastError.At) >= 5000) {
      return `Only this order fails at ${Agent} (${problem}); others go through. Look at what it sends. After max_failures attempts the step is given up.`;
    }
  }
  return null;
}

/** The failing services that open steps of the order need. */
function failing(task, services) {
  const needed = open(task).map((step) => step.Agent);
  return services.filter((service) => service.Text && needed.includes(service.Service));
}

/** Shows each time of a text in the time zone of the browser. */
export function local(text) {
  return text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (at) => clock(at));
}

/** The situation in a few words, for a row of a list. */
export function inBrief(task, services) {
  switch (task.ProcessState) {
    case "Processed":
      return "";
    case "Compensated":
    case "Closed":
      return task.Reason ? brief(task.Reason) : "";
    case "Error":
      return task.Reason ? brief(task.Reason) : "needs an operator";
    default:
      return [task.Situation.Head, ...failing(task, services).map((service) => service.Text)]
        .filter(Boolean)
        .map(local)
        .join(" ");
  }
}

function brief(reason) {
  return reason.Step ? `${reason.Code} at ${reason.Step}` : reason.Code;
}

function upper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The steps that an operator may settle, each with an outcome that it may have. */
export function toSettle(task) {
  return task.Steps.filter((step) => step.ProcessState === "Error" && !step.Approval).flatMap((step) => {
    const isOfLine = step.Name.includes("/") && task.Lines?.Carried.length > 1;
    const forward = ["Done", step.Optional && "Skipped", isOfLine && "Dropped"].filter(Boolean);
    const outcomes = step.Direction === "Undo" ? ["Undone"] : forward;
    return outcomes.map((outcome) => ({ step: step.Name, outcome }));
  });
}

/** The steps that wait for people to decide. */
export function asked(task) {
  return task.Steps.filter((step) => step.Approval && step.ProcessState === "Processing");
}

/** The consequences of an action for this order: sentences, shown before the confirmation. */
export function consequences(task, action) {
  switch (action) {
    case "resubmit":
      return resubmitting(task);
    case "cancel":
      return cancelling(task);
    case "pause": {
      const busy = task.Steps.filter((step) => step.ProcessState === "Processing").map((step) => step.Name);
      const now = busy.length ? `The attempt under way (${busy.join(", ")}) may end.` : "";
      return [now, "No new step starts until somebody resumes the order. Nothing is undone."].filter(Boolean);
    }
    case "resume":
      return ["The order goes on where it stands: what is ready starts at once."];
    case "settle":
      return [
        "Only settle what you have seen at the service. This cannot be taken back.",
        "The step counts as if its service had replied. No service is called. Dropped: the steps of its line are undone, and the order goes on with the others.",
        "Once no step is in Error, the order goes on in its direction.",
      ];
    case "approve":
      return [
        `The order goes on: ${who(asked(task))} is done, with your name and reason as its output.`,
        "This cannot be taken back.",
      ];
    case "reject":
      return [
        "The order is not carried out. As its workflow says, what was begun is undone, or the order waits in Error.",
        "This cannot be taken back.",
      ];
    case "note":
      return ["The note stays in the order's history. Nothing else changes.", "It cannot be taken back."];
    case "close":
      return [
        "The order ends as Closed, and its steps stay as they are. No service is called, and nothing is undone.",
        "Only close what you have put right elsewhere, or what cannot be put right. This cannot be taken back.",
      ];
    case "erase":
      return [
        "The document, outputs, notes, reasons and names of people go. States, times and attempts stay.",
        "Your name and reason stay: do not name the person there. Only an administrator may erase.",
        "This cannot be taken back, and the order cannot be posted again.",
      ];
    case "again":
      return [
        "A new order with the same document is posted. This order stays compensated.",
        "All steps start under new idempotency keys. Posted a second time, it is still one new order.",
      ];
    default:
      return [];
  }
}

function who(steps) {
  return steps.map((step) => step.Name).join(" or ");
}

function resubmitting(task) {
  const failed = task.Steps.filter((step) => step.ProcessState === "Error");
  const undoing = isUndoing(task);
  const lines = failed.map((step) => {
    const work = step.Direction === "Undo" ? `The undo of ${step.Name}` : upper(step.Name);
    return (
      `${work} is tried afresh as attempt ${step.Attempt + 1}, ` +
      "with no failures counted and under the same idempotency key."
    );
  });
  const later = task.Steps.filter(
    (step) => step.ProcessState === "Pending" && step.Direction === (undoing ? "Undo" : "Forward"),
  );
  if (undoing) later.reverse();
  if (later.length)
    lines.push(`Then follows: ${later.map((step) => (undoing ? `undo of ${step.Name}` : step.Name)).join(", ")}.`);
  lines.push(undoing ? "The order ends undone." : "If the cause is not mended, it ends in Error again.");
  return lines;
}

function cancelling(task) {
  const begun = task.Steps.filter(
    (step) => step.Attempt >= 1 && !(step.Direction === "Undo" && step.ProcessState === "Processed"),
  ).reverse();
  if (!begun.length)
    return [
      "Nothing was begun, so there is nothing to undo. The order ends as Compensated.",
      "This cannot be taken back.",
    ];
  const lines = [`What was begun is undone in reverse order: ${begun.map((step) => step.Name).join(", ")}.`];
  for (const step of begun.filter((one) => one.ProcessState === "Processing" && one.Direction === "Forward")) {
    lines.push(
      `The undo of ${step.Name} waits for the attempt under way, until ${clock(step.CompleteBy)} at the latest.`,
    );
  }
  lines.push("This cannot be taken back.");
  return lines;
}
