// What an order waits for, what to do about it, and what an action will do: in words, read off the task and the health
// of the services. Pure but for the clock, so that the same order is always told in the same way.

import { clock, ms } from "./time.js";

/** The states in the order of an order's life, each with a sign, so that colour is never all there is. */
export const STATES = [
  ["Pending", "○", "accepted, not begun"],
  ["Processing", "◐", "steps are carried out"],
  ["Processed", "✓", "carried out whole"],
  ["Error", "!", "waits for an operator"],
  ["Compensating", "↶", "being undone"],
  ["Compensated", "↺", "undone whole"],
];

/** The codes of `Reason`: what happened, and what an operator does about it. */
export const REASONS = {
  exhausted: [
    "Time and again no answer from a service, or it failed until the step's horizon was over.",
    "Mend the service, then resubmit: the step starts afresh under the same idempotency key.",
  ],
  rejected: [
    "The service said no for good, and the workflow says hold.",
    "Resubmit once the cause is gone, or cancel: what was done is undone.",
  ],
  "compensation-failed": [
    "An undo was refused or got no answer.",
    "Mend the cause at the service, then resubmit: the undo goes on.",
  ],
  "dead-letter": [
    "A message that the order needs could not be handled, time and again.",
    "Look at the log for why; resubmit makes a new attempt.",
  ],
  "hop-limit": ["Messages went round in circles; a fault of the program.", "Report it; resubmit goes on."],
  cancelled: ["An operator cancelled it.", "Nothing; what was begun is undone."],
};

/** What became of a dead letter, in words. */
export const FATES = {
  Stored: "its order was not stored; it is now, in Error",
  Held: "its order needs it, and is in Error",
  Stale: "its order does not need it any more",
  NoOrder: "there is no such order",
  LostWish: "an operator's wish was not carried out: make it again",
  Unreadable: "nobody can read it",
};

/** Whether an action is possible, as the API will judge it. */
export function allows(task, action) {
  const isOpen = ["Pending", "Processing", "Compensating"].includes(task.ProcessState);
  switch (action) {
    case "resubmit":
      return task.ProcessState === "Error";
    case "cancel":
      return ["Pending", "Processing", "Error"].includes(task.ProcessState);
    case "pause":
      return isOpen && !task.Paused;
    case "resume":
      return isOpen && Boolean(task.Paused);
    default:
      return false;
  }
}

/** An operator's actions: the name on the button, the title of its dialog, and what was done in one word. */
export const ACTIONS = {
  resubmit: { label: "Resubmit", title: "Resubmit the order", done: "resubmitted" },
  cancel: { label: "Cancel order", title: "Cancel the order and undo it", done: "cancelled", danger: true },
  pause: { label: "Pause", title: "Pause the order", done: "paused" },
  resume: { label: "Resume", title: "Let the order go on", done: "resumed" },
};

/** How an order stands: `{tone, head, text: [..], todo}`. `services` may be empty where they are not known. */
export function situation(task, services) {
  const reason = task.Reason;
  switch (task.ProcessState) {
    case "Processed":
      return { tone: "good", head: "It is done.", text: ["Every step was carried out."], todo: null };
    case "Compensated":
      return {
        tone: "undone",
        head: "It is undone.",
        text: [whyUndone(reason), "Everything that was begun was taken back."],
        todo: null,
      };
    case "Error":
      return inError(task);
    default:
      break;
  }
  if (task.Paused) {
    const { By, Reason, Since } = task.Paused;
    const busy = task.Steps.some((step) => step.ProcessState === "Processing");
    return {
      tone: "wait",
      head: `It is paused by ${By} since ${clock(Since)}: ${Reason}`,
      text: [busy ? "The attempt under way may end; nothing new starts." : "Nothing new starts."],
      todo: "Resume it when the reason is gone.",
    };
  }
  const undoing = task.ProcessState === "Compensating";
  const open = task.Steps.filter((step) => isOpenStep(step, undoing));
  const told = open.filter((step) => step.ProcessState === "Processing" || step.NotBefore);
  const first = undoing ? open.slice(-1) : open.slice(0, 1);
  const parts = (told.length ? told : first).map((step) => ofStep(step, services));
  const text = parts.flatMap((part) => part.text);
  if (undoing) text.unshift(`It is being undone. ${whyUndone(reason)}`);
  if (!parts.length) parts.push({ head: "It goes on in a moment.", tone: "busy", text: [] });
  const worst = parts.find((part) => part.tone === "wait") ?? parts[0];
  return { tone: worst.tone, head: parts.map((part) => part.head).join(" "), text, todo: worst.todo ?? "Nothing." };
}

/** The same in a few words, for a row of a list. */
export function inBrief(task, services) {
  switch (task.ProcessState) {
    case "Processed":
      return "";
    case "Compensated":
      return task.Reason ? brief(task.Reason) : "";
    case "Error":
      return task.Reason ? brief(task.Reason) : "needs an operator";
    default:
      return situation(task, services).head;
  }
}

function brief(reason) {
  return reason.Step ? `${reason.Code} at ${reason.Step}` : reason.Code;
}

function isOpenStep(step, undoing) {
  if (undoing) return step.Direction === "Undo" && step.ProcessState !== "Processed";
  return step.ProcessState === "Pending" || step.ProcessState === "Processing";
}

function ofStep(step, services) {
  const service = services.find(({ Service }) => Service === step.Agent);
  const work = step.Direction === "Undo" ? `the undo of ${step.Name}` : step.Name;
  const now = Date.now();
  const failed = step.LastError
    ? [`Last error, of attempt ${step.LastError.Attempt}: ${step.LastError.Message} (${step.LastError.Code}).`]
    : [];
  const isFailing = service && service.State !== "Closed";
  const isLate = step.ProcessState === "Processing" && ms(step.CompleteBy) < now;
  if (step.ProcessState === "Processing" && (isLate || !isFailing)) {
    if (isLate) {
      return {
        tone: "wait",
        text: failed,
        todo: "Nothing: the supervisor counts the failure and sees to another attempt.",
        head: `${step.Agent} has not answered for ${work} by ${clock(step.CompleteBy)}.`,
      };
    }
    return {
      tone: "busy",
      text: failed,
      todo: "Nothing.",
      head: `${step.Agent} works on ${work}: attempt ${step.Attempt}, until ${clock(step.CompleteBy)} at the latest.`,
    };
  }
  const waits = step.NotBefore && ms(step.NotBefore) > now;
  if (isFailing) {
    const probe =
      service.State === "HalfOpen" || !service.Until || ms(service.Until) <= now
        ? "a probe is on its way"
        : `the next probe is at ${clock(service.Until)}`;
    return {
      tone: "wait",
      head: `It waits for ${step.Agent}, which is failing; ${probe}.`,
      text: [`${upper(work)} goes on by itself when ${step.Agent} is back.`, ...failed],
      todo: `Nothing for the order itself: mend ${step.Agent}.`,
    };
  }
  if (waits && service && step.FailureCount === 0) {
    return {
      tone: "wait",
      todo: "Nothing.",
      text: failed,
      head:
        `${upper(work)} was put off until ${clock(step.NotBefore)}; ` +
        `${step.Agent} is back, and what waited is let through bit by bit.`,
    };
  }
  if (waits) {
    return {
      tone: "wait",
      todo: "Nothing.",
      text: failed,
      head:
        `${upper(work)} waits until ${clock(step.NotBefore)} before it is tried again ` +
        `(${failures(step.FailureCount)} so far).`,
    };
  }
  return {
    tone: "busy",
    todo: "Nothing. If its wake was lost, the supervisor wakes it again.",
    text: failed,
    head: `${upper(work)} starts in a moment.`,
  };
}

function inError(task) {
  const reason = task.Reason ?? { Code: "unknown", Message: "" };
  const [happened, todo] = REASONS[reason.Code] ?? [
    "It stands still.",
    "Look at its steps, then resubmit or cancel it.",
  ];
  const text = [happened, reason.Message ? upper(stop(reason.Message)) : ""];
  if (reason.Earlier) text.push(`It was being undone. ${whyUndone(reason.Earlier)}`);
  return { tone: "bad", head: `It waits for you: ${brief(reason)}.`, text, todo };
}

function whyUndone(reason) {
  return reason ? `Why: ${reason.Code}. ${upper(stop(reason.Message))}` : "";
}

function failures(count) {
  return count === 1 ? "1 failure" : `${count} failures`;
}

/** With a full stop at its end. */
function stop(text) {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function upper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** What an action will do to this order: sentences, shown before it is confirmed. */
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
    default:
      return [];
  }
}

function resubmitting(task) {
  const failed = task.Steps.filter((step) => step.ProcessState === "Error");
  const undoing = task.Steps.some((step) => step.Direction === "Undo");
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
