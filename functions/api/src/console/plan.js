// Plans a job: its action, its selection of orders, its canaries and its rate. A new plan only counts the orders.

import { Problem, forget, getOnce, post } from "./api.js";
import { inWords } from "./actions.js";
import { whoAndWhy, wish } from "./dialog.js";
import { announce, byId, fragment, h } from "./dom.js";
import { fromLocal, stepNames, toLocal } from "./orders.js";
import { field, heading, notice } from "./parts.js";
import { JOB_ACTIONS, REASONS } from "./words.js";

let failure = null;
let sending = false;

export const plan = {
  name: "plan",
  title: () => "Plan a job",
  async load(_route, signal) {
    return stepNames(await getOnce("workflows", signal));
  },
  opened() {
    [failure, sending] = [null, false];
    forget("workflows");
  },
  render(steps, { params, go, redraw }) {
    const text = (name) => params.get(name) ?? "";
    const choices = (names, given, any) => [
      ["", any],
      ...[...new Set([...names, given].filter(Boolean))].map((name) => [name, name]),
    ];
    return fragment(
      heading("Handle many orders"),
      h(
        "p",
        { class: "lead" },
        "First a dry run: the orders that match are counted, and nothing is done. ",
        "You see the number, then start the job or discard it.",
      ),
      h(
        "form",
        { class: "panel", id: "plan", "aria-label": "Plan", onsubmit: (event) => send(event, go, redraw) },
        failure ? h("div", { id: "plan-error" }, notice("bad", h("p", {}, failure))) : null,
        h("h2", {}, "What to do"),
        h(
          "div",
          { class: "fields" },
          field({
            id: "p-action",
            label: "Action",
            options: Object.entries(JOB_ACTIONS).map(([name, { label }]) => [name, label]),
            value: text("action") || "Resubmit",
            hint:
              "A settle ends the step that you choose below. It counts as done, or as undone if the order was being undone. " +
              "Compensated orders are posted again as new orders, each at most once.",
          }),
        ),
        h("h2", {}, "Which orders"),
        h(
          "div",
          { class: "fields" },
          field({
            id: "p-reason",
            label: "Reason",
            options: choices(REASONS, text("reason"), "any"),
            value: text("reason"),
            hint: "Post again: any also selects cancelled orders.",
          }),
          field({ id: "p-step", label: "Step", options: choices(steps, text("step"), "any"), value: text("step") }),
          field({
            id: "p-since",
            label: "Failed since",
            type: "datetime-local",
            step: "any",
            value: toLocal(text("since")),
            hint: "Post again: the time at which the order was compensated.",
          }),
          field({
            id: "p-until",
            label: "Failed until",
            type: "datetime-local",
            step: "any",
            value: toLocal(text("until")),
            hint: "At the latest now: what fails later is not meant.",
          }),
        ),
        h("h2", {}, "How carefully"),
        h(
          "div",
          { class: "fields" },
          field({
            id: "p-canary",
            label: "Canaries",
            type: "number",
            min: "1",
            max: "100",
            required: true,
            value: text("canary") || "5",
            hint: "These orders go first. The others wait for their outcome.",
          }),
          field({
            id: "p-rate",
            label: "Orders per second",
            type: "number",
            min: "1",
            max: "1000",
            required: true,
            value: text("rate") || "10",
            hint: "For the others.",
          }),
          field({
            id: "p-stop",
            label: "Stop at failed (%)",
            type: "number",
            min: "0",
            max: "100",
            required: true,
            value: text("stop") || "20",
            hint: "The job stops when more of them fail again.",
          }),
        ),
        h("h2", {}, "Who and why"),
        h("div", { class: "fields" }, whoAndWhy()),
        h(
          "div",
          { class: "buttons" },
          h(
            "button",
            { type: "submit", class: "primary", disabled: sending },
            sending ? "Counting…" : "Count them (dry run)",
          ),
          h("a", { class: "button", href: "#/jobs" }, "Leave it"),
        ),
      ),
    );
  },
};

async function send(event, go, redraw) {
  event.preventDefault();
  const form = event.target;
  const who = wish(form);
  if (!who || sending) return;
  const given = (id) => form.elements[id].value;
  const Selector = Object.fromEntries(
    Object.entries({
      ReasonCode: given("p-reason"),
      Step: given("p-step"),
      FailedSince: fromLocal(given("p-since")),
      FailedUntil: fromLocal(given("p-until")),
    }).filter(([, value]) => value),
  );
  [failure, sending] = [null, true];
  redraw();
  try {
    const job = await post("bulk", {
      ...who,
      Action: given("p-action"),
      Selector,
      Canary: Number(given("p-canary")),
      RatePerSecond: Number(given("p-rate")),
      StopAtFailedPercent: Number(given("p-stop")),
    });
    announce(job.DryRun.Message);
    go(`#/job/${encodeURIComponent(job.JobID)}`);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    failure = inWords(error, "It is safe to plan it again: a job does nothing until it is started.");
    announce(failure);
  } finally {
    sending = false;
    if (byId("plan")) redraw();
  }
}
