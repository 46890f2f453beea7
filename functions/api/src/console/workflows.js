// The workflows with their versions, and one of them with its drawing.

import { Problem, get } from "./api.js";
import { drawing, named } from "./drawing.js";
import { fragment, h } from "./dom.js";
import { heading, panel, plural, table } from "./parts.js";
import { length } from "./time.js";
import { trying } from "./trying.js";

export const workflows = {
  name: "workflows",
  title: () => "Workflows",
  load: (_route, signal) => all(signal),
  render(versions) {
    return fragment(
      heading("Workflows"),
      h(
        "p",
        { class: "lead" },
        "An order keeps the version with which it began. A new version is for new orders only.",
      ),
      table({
        caption: "All versions of all workflows",
        hideCaption: true,
        rows: versions,
        key: named,
        empty: "No workflow is known.",
        columns: [
          { name: "Workflow", isName: true, cell: (one) => workflowLink(one.Name, one.Version) },
          { name: "New orders", cell: (one) => newOrders(one, versions) },
          { name: "Steps", kind: "num", cell: (one) => one.Steps.length },
          { name: "Agents", kind: "text", cell: (one) => agents(one).join(", ") },
          { name: "Priority", cell: (one) => one.Priority ?? "–" },
        ],
      }),
    );
  },
};

export const workflow = {
  name: "workflow",
  title: ({ id }) => `Workflow ${id}`,
  async load({ id }, signal) {
    const versions = await all(signal);
    const one = versions.find((version) => named(version) === id);
    if (!one) throw new Problem(404, { detail: `There is no workflow ${id}` });
    return { one, versions };
  },
  render({ one, versions }, { redraw }) {
    const others = versions.filter((other) => other.Name === one.Name && other !== one);
    return fragment(
      heading(
        `${one.Name}, version ${one.Version}`,
        h("p", { class: "beside" }, newOrders(one, versions)),
        h("a", { href: ordersOf(one) }, "Its orders"),
      ),
      panel("drawing", plural(one.Steps.length, "step"), drawing(one)),
      panel("steps", "Its settings", settings(one)),
      trying(one, redraw),
      others.length
        ? panel(
            "versions",
            "Other versions",
            h(
              "ul",
              { class: "plain" },
              others.map((other) =>
                h("li", { "data-key": named(other) }, workflowLink(other.Name, other.Version), newOrders(other, versions)),
              ),
            ),
          )
        : null,
    );
  },
};

/** A link to a version of a workflow. */
export function workflowLink(name, version) {
  return h("a", { href: `#/workflow/${encodeURIComponent(`${name}@${version}`)}` }, `${name}, version ${version}`);
}

/** The address of the orders of a version. */
function ordersOf({ Name, Version }) {
  return `#/orders?${new URLSearchParams({ workflow: `${Name}/${Version}` })}`;
}

/** All versions: by name, the newest first. */
async function all(signal) {
  const { Workflows } = await get("workflows", signal);
  return [...Workflows].sort((one, other) => one.Name.localeCompare(other.Name) || other.Version - one.Version);
}

/** Which new orders begin with a version. */
function newOrders(one, versions) {
  const shared = versions.find((other) => other.Name === one.Name && other.SharePercent && !other.Current);
  const words = () => {
    if (one.RetiredAt) return "retired, no new orders";
    if (one.Current) return shared ? `${100 - shared.SharePercent} % of new orders` : "all new orders";
    return one.SharePercent ? `${one.SharePercent} % of new orders` : "no new orders";
  };
  return h(
    "span",
    { class: "new-orders" },
    h("span", { class: "badge", "data-any": one.Current || Boolean(one.SharePercent) }, words()),
    one.Default ? h("span", { class: "badge" }, "default") : null,
  );
}

function agents(one) {
  return [...new Set(one.Steps.map((step) => step.Agent))];
}

/** The agent of a step, the people who decide on it, or the workflow of the order that it makes. */
function byWhom({ Agent, Approval, Workflow }) {
  if (Workflow) return `${Agent} (${Workflow})`;
  return Approval?.Role ? `${Agent} (${Approval.Role})` : Agent;
}

/** The time of an attempt, of a decision, or until the end of an order. */
function within({ Approval, Workflow, CompleteWithinMs, WaitWithinMs }) {
  const ms = Approval || Workflow ? WaitWithinMs : CompleteWithinMs;
  return ms ? length(ms) : "–";
}

/** A pivot, past which the order only goes forward, or a step without an undo. */
function wayBack(step) {
  return [step.Pivot ? "pivot" : null, step.NoUndo ? "no undo" : null].filter(Boolean).join(", ") || "–";
}

/** What becomes of the order, after the longer waits of the step. */
function ifGivenUp({ LongerWaits, LongerWaitMs, OnExhausted }) {
  return LongerWaits ? `${LongerWaits} × ${length(LongerWaitMs)}, then ${OnExhausted}` : (OnExhausted ?? "–");
}

function settings(one) {
  return table({
    caption: "The steps and their settings",
    hideCaption: true,
    rows: one.Steps,
    key: (step) => step.Name,
    empty: "It has no steps.",
    columns: [
      { name: "Step", isName: true, cell: (step) => step.Name },
      { name: "Agent", cell: byWhom },
      { name: "After", kind: "text", cell: (step) => step.After.join(", ") || "–" },
      { name: "When", kind: "text", cell: (step) => step.When?.join(" and ") ?? "–" },
      { name: "Answer within", cell: within },
      { name: "Failures", kind: "num", cell: (step) => step.MaxFailures ?? "–" },
      { name: "If rejected", cell: (step) => (step.Optional ? "skip" : (step.OnRejected ?? "–")) },
      { name: "If given up", cell: ifGivenUp },
      { name: "Way back", cell: wayBack },
    ],
  });
}
