// The list of orders: filter, search, pages, and actions on selected orders. The address holds filter, search and page.

import { actOnMany } from "./actions.js";
import { forget, getIfThere, getOnce, withQuery } from "./api.js";
import { choice, listed, shownColumns, sorted, sortedHow, wantsIndex } from "./columns.js";
import { fragment, h } from "./dom.js";
import { exportOrders } from "./exporting.js";
import { orderLink, shortId } from "./ids.js";
import { pages } from "./letters.js";
import { field, heading, plural, state, table, taken } from "./parts.js";
import { when } from "./time.js";
import { ACTIONS, REASONS, STATES, allows } from "./words.js";

const PAGE = 50;
const FILTERS = ["state", "reason", "step", "since", "until", "correlation", "field", "value", "workflow", "service", "late", "approval", "contradicted"];

// The ids of the selected orders, as long as this list is open.
let selected = new Set();
let selectedIn = "";

export const orders = {
  name: "orders",
  title: () => "Orders",
  opened() {
    // A version may have been applied since.
    forget("workflows");
  },
  async load({ params }, signal) {
    const query = { ...filterOf(params), cursor: params.get("cursor"), limit: PAGE };
    const [page, health, workflows] = await Promise.all([
      listed(query, wantsIndex(), signal),
      getIfThere("services", signal),
      getOnce("workflows", signal),
    ]);
    const names = [...new Set((workflows?.Workflows ?? []).map((workflow) => workflow.Name))];
    return { page, services: health?.Services ?? [], steps: stepNames(workflows), names };
  },
  render({ page, services, steps, names }, context) {
    const known = services.map(({ Service }) => Service);
    const { params } = context;
    if (selectedIn !== params.toString()) [selected, selectedIn] = [new Set(), params.toString()];
    return fragment(
      heading("Orders"),
      filters(params, { steps, names, known }, context),
      h(
        "div",
        { class: "tools", id: "tools" },
        choice(context),
        h("button", { type: "button", id: "export", onclick: () => exportOrders(filterOf(params)) }, "Export…"),
      ),
      reach(page),
      selection(page.Orders, context),
      list(page, services, context),
      pages(params, page.NextCursor, "#/orders"),
    );
  },
};

function filterOf(params) {
  return Object.fromEntries(FILTERS.map((name) => [name, params.get(name)]));
}

/** The names of the steps of all workflows, in their order. */
export function stepNames(workflows) {
  return [...new Set((workflows?.Workflows ?? []).flatMap((workflow) => workflow.Steps.map((step) => step.Name)))];
}

/** Converts a time of the address for a field with local times. */
export function toLocal(iso) {
  const at = Date.parse(iso ?? "");
  if (Number.isNaN(at)) return "";
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000)
    .toISOString()
    .slice(0, 23)
    .replace(/\.000$/, "");
}

/** The reverse. Empty for an empty field. */
export function fromLocal(value) {
  const at = Date.parse(value);
  return Number.isNaN(at) ? "" : new Date(at).toISOString();
}

function filters(params, { steps, names, known }, { go }) {
  const choices = (known, given) => [
    ["", "any"],
    ...[...new Set([...known, given].filter(Boolean))].map((name) => [name, name]),
  ];
  const apply = (event) => {
    event?.preventDefault();
    const form = document.getElementById("filters");
    const values = Object.fromEntries(FILTERS.map((name) => [name, form.elements[`f-${name}`].value.trim()]));
    values.since = fromLocal(values.since);
    values.until = fromLocal(values.until);
    go(withQuery("#/orders", values));
  };
  const more = FILTERS.slice(FILTERS.indexOf("since")).some((name) => name !== "workflow" && params.get(name));
  const yesOrAny = [
    ["", "any"],
    ["true", "yes"],
  ];
  const text = (name) => params.get(name) ?? "";
  return h(
    "form",
    { id: "filters", class: "filters", "aria-label": "Filter", onsubmit: apply },
    field({
      id: "f-state",
      label: "State",
      options: choices(
        STATES.map(([name]) => name),
        text("state"),
      ),
      value: text("state"),
    }),
    field({
      id: "f-reason",
      label: "Reason",
      options: choices(REASONS, text("reason")),
      value: text("reason"),
    }),
    field({
      id: "f-workflow",
      label: "Workflow",
      options: choices(names, text("workflow")),
      value: text("workflow"),
    }),
    field({ id: "f-step", label: "Step", options: choices(steps, text("step")), value: text("step") }),
    h(
      "details",
      { class: "more", open: more },
      h("summary", {}, "Time, correlation id, document, service, late, approval, contradicted"),
      h(
        "div",
        { class: "fields" },
        field({
          id: "f-since",
          label: "Submitted since",
          type: "datetime-local",
          step: "any",
          value: toLocal(text("since")),
        }),
        field({
          id: "f-until",
          label: "Submitted until",
          type: "datetime-local",
          step: "any",
          value: toLocal(text("until")),
        }),
        field({ id: "f-correlation", label: "Correlation id", maxlength: "256", value: text("correlation") }),
        field({
          id: "f-field",
          label: "Field of the document",
          maxlength: "256",
          placeholder: "/Customer/Email",
          hint: "A JSON pointer.",
          value: text("field"),
        }),
        field({ id: "f-value", label: "Its value", maxlength: "256", value: text("value") }),
        field({
          id: "f-service",
          label: "Waits for the service",
          options: choices(known, text("service")),
          value: text("service"),
        }),
        field({ id: "f-late", label: "Late", options: yesOrAny, value: text("late") }),
        field({ id: "f-approval", label: "Waits for an approval", options: yesOrAny, value: text("approval") }),
        field({ id: "f-contradicted", label: "A result contradicts its end", options: yesOrAny, value: text("contradicted") }),
      ),
    ),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "submit", class: "primary" }, "Show"),
      FILTERS.some((name) => params.get(name)) ? h("a", { class: "button", href: "#/orders" }, "All orders") : null,
    ),
  );
}

function reach(page) {
  if (page.FromIndex) {
    const goOn = page.NextCursor ? " “Older” goes on, also through orders that are not in it." : " That is all of them.";
    return h("p", { class: "quiet", id: "reach" }, "From the index.", goOn);
  }
  if (!page.SearchedBackTo && !page.Examined) return null;
  const upTo = page.SearchedBackTo ? [", back to ", when(page.SearchedBackTo)] : null;
  const goOn = page.NextCursor ? " There may be more: go on with “Older”." : " That is all of them.";
  return h("p", { class: "quiet", id: "reach" }, `Looked at ${plural(page.Examined ?? 0, "order")}`, upTo, ".", goOn);
}

function selection(rows, { changed }) {
  const chosen = rows.filter((task) => selected.has(task.OrderID));
  if (!chosen.length) return h("div", { id: "selection", class: "selection", hidden: true });
  return h(
    "div",
    { id: "selection", class: "selection", role: "group", "aria-label": "Selected orders" },
    h("span", { role: "status" }, `${plural(chosen.length, "order")} selected`),
    Object.keys(ACTIONS)
      .filter((action) => !ACTIONS[action].ofOne && chosen.some((task) => allows(task, action)))
      .map((action) =>
        h(
          "button",
          {
            type: "button",
            "data-key": action,
            class: ACTIONS[action].danger ? "danger" : null,
            onclick: () =>
              actOnMany(action, chosen, () => {
                selected.clear();
                changed();
              }),
          },
          `${ACTIONS[action].label}…`,
        ),
      ),
  );
}

function list(page, services, { redraw }) {
  const rows = sorted(page.Orders);
  const toggle = (ids, isOn) => {
    for (const id of ids) selected[isOn ? "add" : "delete"](id);
    redraw();
  };
  const all = rows.length > 0 && rows.every((task) => selected.has(task.OrderID));
  const everything = h(
    "label",
    { class: "tick" },
    h("span", { class: "unseen" }, "Select all on this page"),
    h("input", {
      type: "checkbox",
      checked: all,
      onchange: (event) =>
        toggle(
          rows.map((task) => task.OrderID),
          event.target.checked,
        ),
    }),
  );
  const shown = table({
    caption: `Orders, ${sortedHow()}`,
    hideCaption: true,
    rows,
    key: (task) => task.OrderID,
    empty: page.NextCursor ? "None on this page. There may be more: go on with “Older”." : "No orders match.",
    columns: [
      {
        name: "",
        head: everything,
        kind: "tick-cell",
        cell: (task) =>
          h(
            "label",
            { class: "tick" },
            h("span", { class: "unseen" }, `Select order ${shortId(task.OrderID)}`),
            h("input", {
              type: "checkbox",
              checked: selected.has(task.OrderID),
              onchange: (event) => toggle([task.OrderID], event.target.checked),
            }),
          ),
      },
      {
        name: "State",
        cell: (task) => [state(task.ProcessState), task.Paused ? h("span", { class: "badge" }, "paused") : null, taken(task)],
      },
      { name: "Order", isName: true, cell: (task) => orderLink(task.OrderID) },
      ...shownColumns(rows, services),
    ],
  });
  // More columns than fit are scrolled to.
  return rows.length ? h("div", { class: "wide" }, shown) : shown;
}
