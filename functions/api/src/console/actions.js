// An operator's actions on orders. A dialog asks for name and reason and shows the consequences. Then the console sends
// the command and shows its outcome.

import { Problem, forget, get, getIfThere, getOnce, post } from "./api.js";
import { open, whoAndWhy, wish } from "./dialog.js";
import { announce, h } from "./dom.js";
import { orderLink, shortId } from "./ids.js";
import { json, notice, plural, state } from "./parts.js";
import { clock } from "./time.js";
import { ACTIONS, allows, asked, consequences, situation, toSettle } from "./words.js";

// The actions that let an order go on.
const PRIMARY = ["approve", "resubmit", "resume"];
const DECISIONS = ["approve", "reject"];
const LOOK_EVERY_MS = 400;
const LOOK_FOR_MS = 20_000;

/** The buttons for the actions that the order's state allows. */
export function buttons(task, changed, actions = Object.keys(ACTIONS).filter((action) => action !== "erase")) {
  return actions
    .filter((action) => allows(task, action))
    .map((action) =>
      h(
        "button",
        {
          type: "button",
          "data-key": action,
          class: ACTIONS[action].danger ? "danger" : PRIMARY.includes(action) ? "primary" : null,
          onclick: () => actOnOne(action, task, changed),
        },
        `${ACTIONS[action].label}…`,
      ),
    );
}

/** Asks for one order. The action applies to the version on the page: after a 412 the dialog asks again. */
export function actOnOne(action, task, changed) {
  const it = { phase: "ask", task, error: null, note: null };
  const submit = async (event) => {
    event.preventDefault();
    const read = { settle: settlement, note: taking, approve: decided, reject: decided }[action] ?? (() => ({}));
    const said = read(event.target, it.task);
    const who = said && wish(event.target);
    if (!who || it.phase !== "ask") return;
    it.phase = "sending";
    it.step = said.Step;
    dialog.redraw();
    try {
      const path = `orders/${encodeURIComponent(task.OrderID)}/${action}`;
      const answer = await post(path, withOutput({ ...said, ...who }), it.task.Version);
      it.phase = "accepted";
      announce("Accepted. Waiting for the scheduler.");
      dialog.redraw();
      dialog.focusHead();
      changed();
      if (action === "again") await followNew(it, answer.OrderID);
      else await follow(it, action, answer.CommandID);
      changed();
    } catch (error) {
      it.phase = "ask";
      await explain(it, error, action);
    }
    if (!dialog.isOpen()) return;
    announce(it.error ?? it.note);
    dialog.redraw();
  };
  const dialog = open({
    title: ACTIONS[action].title,
    onclose: changed,
    draw: () => [
      h("p", { class: "about" }, state(it.task.ProcessState), " ", h("span", { class: "id" }, it.task.OrderID)),
      it.error ? h("div", { class: "notice", "data-tone": "bad", id: "dialog-error" }, h("p", {}, it.error)) : null,
      it.phase === "ask" || it.phase === "sending"
        ? question(it, action, submit, () => dialog.close())
        : outcome(it, () => dialog.close()),
    ],
  });
  if (DECISIONS.includes(action)) showDocument(it, dialog);
}

/** What is decided on is in view. */
async function showDocument(it, dialog) {
  const order = await getOnce(`orders/${encodeURIComponent(it.task.OrderID)}/document`).catch(() => null);
  it.document = order?.Document ?? null;
  if (dialog.isOpen()) dialog.redraw();
}

function question(it, action, submit, close) {
  if (!allows(it.task, action)) {
    return h(
      "div",
      { "data-key": "impossible" },
      notice("wait", h("p", {}, `In this state it cannot be ${ACTIONS[action].done}. ${situation(it.task, []).head}`)),
      closing(close),
    );
  }
  const sending = it.phase === "sending";
  return h(
    "form",
    { "data-key": "ask", onsubmit: submit },
    h(
      "div",
      { class: "consequences", id: "consequences" },
      h("h3", {}, "What will happen"),
      h(
        "ul",
        {},
        consequences(it.task, action).map((line) => h("li", {}, line)),
      ),
    ),
    DECISIONS.includes(action) ? decision(it) : null,
    action === "settle" ? stepAndOutput(it.task) : null,
    whoAndWhy("", undefined, action === "note" ? "Note" : undefined),
    action === "note" ? whoTakes(it.task) : null,
    action === "erase" ? confirmation(it.task) : null,
    h(
      "div",
      { class: "buttons" },
      h(
        "button",
        {
          type: "submit",
          class: ACTIONS[action].danger ? "danger" : "primary",
          disabled: sending,
          "aria-describedby": "consequences",
        },
        sending ? "Sending…" : ACTIONS[action].label,
      ),
      h("button", { type: "button", onclick: close }, "Leave it"),
    ),
  );
}

/** The order's id, typed: what is erased cannot be brought back. */
function confirmation({ OrderID }) {
  return h(
    "div",
    { class: "field" },
    h("label", { for: "confirm" }, "The order's ID, to confirm"),
    h("input", {
      id: "confirm",
      name: "confirm",
      required: true,
      pattern: OrderID,
      title: "This is not the ID of this order.",
      autocomplete: "off",
      spellcheck: "false",
    }),
  );
}

/** The document that is decided on, and the choice of the step where several are asked for. */
function decision({ task, document }) {
  const steps = asked(task).map((step) => step.Name);
  return [
    document ? h("div", { class: "decided", id: "decided" }, json(document, "The document")) : null,
    steps.length > 1
      ? h(
          "div",
          { class: "field" },
          h("label", { for: "step" }, "The step"),
          h(
            "select",
            { id: "step", name: "step" },
            steps.map((name) => h("option", { value: name, "data-key": name }, name)),
          ),
        )
      : null,
  ];
}

function decided({ elements }, task) {
  return { Step: elements.step?.value ?? asked(task)[0]?.Name };
}

/** The fields of a settle: the step, and the output of one that is done. */
function stepAndOutput(task) {
  const steps = toSettle(task);
  const output = h(
    "div",
    { class: "field" },
    h("label", { for: "output" }, "Output of the step, as JSON"),
    h("input", { id: "output", name: "output", autocomplete: "off", "aria-describedby": "output-hint" }),
    h("p", { class: "hint", id: "output-hint" }, "The steps after it get it. Empty: {}. At most 16 KiB."),
  );
  return [
    h(
      "div",
      { class: "field" },
      h("label", { for: "step" }, "The step that you mended by hand"),
      h(
        "select",
        { id: "step", name: "step" },
        steps.map(({ step, outcome }, place) => h("option", { value: place }, `${step}: ${outcome.toLowerCase()}`)),
      ),
    ),
    steps.some(({ outcome }) => outcome === "Done") ? output : null,
  ];
}

/** The choice of a note: whether the operator takes the order on. */
function whoTakes({ Taken }) {
  const option = (value, words) => h("option", { value }, words);
  return h(
    "div",
    { class: "field" },
    h("label", { for: "take" }, "Who works on it"),
    h(
      "select",
      { id: "take", name: "take" },
      option("", Taken ? `${Taken.By} has taken it on` : "nobody has taken it on"),
      option("true", "I take it on"),
      Taken ? option("false", "nobody any more") : null,
    ),
  );
}

function taking({ elements }) {
  return elements.take.value ? { Take: elements.take.value === "true" } : {};
}

/** The values of those fields; `null` if the output is no JSON. Its text stays as it is, digit for digit. */
function settlement({ elements }, task) {
  const { step: Step, outcome: Outcome } = toSettle(task)[elements.step.value];
  const text = elements.output?.value.trim();
  if (!text || Outcome !== "Done") return { Step, Outcome };
  try {
    JSON.parse(text);
    elements.output.setCustomValidity("");
  } catch {
    elements.output.setCustomValidity("This is no JSON.");
    elements.output.reportValidity();
    elements.output.oninput = () => elements.output.setCustomValidity("");
    return null;
  }
  return { Step, Outcome, output: text };
}

/** A body; the text of an output stands in it as it is. */
function withOutput({ output, ...body }) {
  const text = JSON.stringify(body);
  return output ? `${text.slice(0, -1)},"Output":${output}}` : text;
}

function outcome(it, close) {
  const tone = it.phase === "done" ? "good" : "busy";
  return h(
    "div",
    { "data-key": "outcome" },
    notice(
      tone,
      h("p", { id: "dialog-result" }, it.note ?? "Accepted. Waiting for the scheduler to carry it out…"),
      it.posted ? h("p", {}, orderLink(it.posted)) : null,
    ),
    closing(close),
  );
}

function closing(close) {
  return h("div", { class: "buttons" }, h("button", { type: "button", class: "primary", onclick: close }, "Close"));
}

/** Polls the order until its history has the command. */
async function follow(it, action, commandId) {
  const until = performance.now() + LOOK_FOR_MS;
  while (performance.now() < until) {
    const task = await get(`orders/${encodeURIComponent(it.task.OrderID)}`).catch(() => null);
    const mine = task?.History.some((line) => line.CommandID === commandId);
    const other = DECISIONS.includes(action) && task && !asked(task).some(({ Name }) => Name === it.step) && task.History.findLast((line) => isDecision(line, it));
    if (!mine && other) {
      [it.phase, it.task] = ["done", task];
      it.note = `${other.Who} decided first: ${other.What}. Your decision does not count.`;
      return;
    }
    if (mine) {
      it.phase = "done";
      it.task = task;
      it.note = `The order was ${ACTIONS[action].done} at ${clock(Date.now())}. ${situation(task, []).head}`;
      return;
    }
    await pause();
  }
  it.note =
    "It was accepted, but is not seen in the order's history yet. " +
    "The scheduler has it; the order's page shows it when it is carried out.";
}

/** Whether a line is a person's decision on the step that was sent. */
function isDecision({ Kind, Step, Why }, { step }) {
  return Step === step && (Kind === "Approved" || (Kind === "Rejected" && Boolean(Why)));
}

function pause() {
  return new Promise((resolve) => {
    setTimeout(resolve, LOOK_EVERY_MS);
  });
}

/** Polls the new order until it is stored. Then the document of the old one names it. */
async function followNew(it, id) {
  it.posted = id;
  const until = performance.now() + LOOK_FOR_MS;
  while (performance.now() < until) {
    if (await getIfThere(`orders/${encodeURIComponent(id)}`).catch(() => null)) {
      forget(`orders/${encodeURIComponent(it.task.OrderID)}/document`);
      it.phase = "done";
      it.note = "It was posted again. This is the new order:";
      return;
    }
    await pause();
  }
  it.note = "It was accepted, but is not stored yet. This is the new order:";
}

/** Shows the problem and its remedy. If the order changed meanwhile, loads it again. */
async function explain(it, error, action) {
  if (!(error instanceof Problem)) throw error;
  const before = it.task;
  if ([404, 409, 412].includes(error.status)) {
    it.task = await get(`orders/${encodeURIComponent(before.OrderID)}`).catch(() => before);
  }
  const decided = DECISIONS.includes(action) && !allows(it.task, action) && it.task.History?.findLast((line) => isDecision(line, it));
  if (decided) {
    it.error = `Nothing was done: ${decided.Who} decided first: ${decided.What}.`;
  } else if (error.status === 412) {
    const as = (task) => `${task.ProcessState} in version ${task.Version}`;
    const now = `It was ${as(before)}, and is ${as(it.task)}.`;
    it.error =
      `Nothing was done: the order was changed while you looked at it. ${now} ` +
      (allows(it.task, action) ? "Look at what will happen now, then decide again." : "");
  } else {
    it.error = inWords(error, "It is not known whether it was queued; it is safe to send it again.");
  }
}

/** A problem and its remedy as a sentence. */
export function inWords(error, unsure) {
  if (error.status === 401 || error.status === 403) return `You may not do this: ${error.message}.`;
  const known = error.status > 0 && error.status < 500;
  return known ? `Refused: ${error.message}.` : `${error.message}. ${unsure}`;
}

/** Asks for several orders at once. Sends one command after the other, each for the version on the page. */
export function actOnMany(action, tasks, changed) {
  const fit = tasks.filter((task) => allows(task, action));
  const it = { phase: "ask", results: [] };
  const submit = async (event) => {
    event.preventDefault();
    const who = wish(event.target);
    if (!who || it.phase !== "ask") return;
    it.phase = "sending";
    for (const task of fit) {
      let line;
      try {
        await post(`orders/${encodeURIComponent(task.OrderID)}/${action}`, who, task.Version);
        line = { task, isDone: true, text: "accepted" };
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        line = {
          task,
          isDone: false,
          text:
            error.status === 412
              ? "nothing done: it was changed meanwhile; look at it again"
              : inWords(error, "Safe to send again."),
        };
      }
      it.results.push(line);
      dialog.redraw();
    }
    it.phase = "done";
    const accepted = it.results.filter(({ isDone }) => isDone).length;
    announce(`${accepted} of ${fit.length} accepted.`);
    dialog.redraw();
  };
  const dialog = open({
    title: `${ACTIONS[action].label}: ${plural(fit.length, "order")}`,
    // A cancelled dialog keeps the selection.
    onclose: () => it.phase === "ask" || changed(),
    draw: () =>
      it.phase === "ask"
        ? askMany(action, tasks, fit, submit, () => dialog.close())
        : toldMany(it, fit, () => dialog.close()),
  });
}

function askMany(action, tasks, fit, submit, close) {
  const unfit = tasks.length - fit.length;
  return h(
    "form",
    { "data-key": "ask", onsubmit: submit },
    unfit
      ? notice("wait", h("p", {}, `${plural(unfit, "selected order")} in a state that does not allow this: left out.`))
      : null,
    h(
      "div",
      { class: "consequences", id: "consequences" },
      h("h3", {}, "What will happen"),
      h(
        "ul",
        {},
        fit
          .slice(0, 5)
          .map((task) =>
            h(
              "li",
              {},
              h("span", { class: "id", title: task.OrderID }, shortId(task.OrderID)),
              " ",
              consequences(task, action).join(" "),
            ),
          ),
        fit.length > 5 ? h("li", {}, `The same for ${fit.length - 5} more.`) : null,
      ),
    ),
    whoAndWhy(),
    h(
      "div",
      { class: "buttons" },
      h(
        "button",
        { type: "submit", class: ACTIONS[action].danger ? "danger" : "primary", "aria-describedby": "consequences" },
        `${ACTIONS[action].label}: ${plural(fit.length, "order")}`,
      ),
      h("button", { type: "button", onclick: close }, "Leave them"),
    ),
  );
}

function toldMany(it, fit, close) {
  return h(
    "div",
    { "data-key": "outcome" },
    h("p", {}, `${it.results.length} of ${fit.length} sent.`),
    h(
      "ul",
      { class: "results", id: "dialog-result" },
      it.results.map(({ task, isDone, text }) =>
        h("li", { "data-tone": isDone ? "good" : "bad" }, orderLink(task.OrderID), ` ${text}`),
      ),
    ),
    it.phase === "done" ? closing(close) : null,
  );
}
