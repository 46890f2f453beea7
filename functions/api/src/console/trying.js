// What the steps of an order would send, without a call. The API is asked once for each press of the button.

import { post } from "./api.js";
import { announce, byId, h } from "./dom.js";
import { notice, panel, plural } from "./parts.js";

const SAMPLE = '{\n  "Item": "mug"\n}';
const OUTPUT = "output-";
// What was typed and found in this tab, by workflow: another version is tried with the same order.
const known = new Map();

/** The panel for a version of a workflow. */
export function trying(one, redraw) {
  if (!known.has(one.Name)) known.set(one.Name, { order: SAMPLE, outputs: new Map() });
  const mine = known.get(one.Name);
  const found = mine.found?.version === one.Version ? mine.found : {};
  const submit = async (event) => {
    event.preventDefault();
    if (mine.isBusy) return;
    mine.order = byId("order").value;
    for (const { Name } of one.Steps) {
      const field = byId(OUTPUT + Name);
      if (field) mine.outputs.set(Name, field.value.trim());
    }
    mine.isBusy = true;
    redraw();
    mine.found = { version: one.Version, ...(await asked(one, mine)) };
    mine.isBusy = false;
    announce(mine.found.problem ?? `${plural(mine.found.steps.length, "step")} tried.`);
    redraw();
  };
  return panel(
    "try",
    "Try an order",
    h("p", { class: "quiet" }, "Shows what each step would send. No service is called, and nothing is stored."),
    h(
      "form",
      { class: "plain", onsubmit: submit },
      area("order", "The order, in JSON", mine.order, 6),
      found.problem ? h("div", { id: "try-problem" }, notice("bad", h("p", {}, found.problem))) : null,
      found.steps ? steps(found.steps, mine.outputs) : null,
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary", disabled: mine.isBusy }, "Try")),
    ),
  );
}

/** The steps, or the problem in words. */
async function asked({ Name, Version, Steps }, { order, outputs }) {
  const given = Steps.filter((step) => outputs.get(step.Name));
  // The texts are sent as they are typed, with all digits.
  for (const [text, what] of [[order, "The order"], ...given.map((step) => [outputs.get(step.Name), `The output of ${step.Name}`])]) {
    try {
      JSON.parse(text);
    } catch (error) {
      return { problem: `${what} is no JSON: ${error.message}` };
    }
  }
  const members = given.map((step) => `${JSON.stringify(step.Name)}:${outputs.get(step.Name)}`);
  try {
    const body = `{"Order":${order},"Outputs":{${members.join()}}}`;
    return { steps: (await post(`workflows/${encodeURIComponent(Name)}/${Version}/try`, body)).Steps };
  } catch (error) {
    return { problem: error.message };
  }
}

function steps(all, outputs) {
  const pointers = all.flatMap((step) => [step.RunsIf, step.Forward?.Needs, step.Undo?.Needs].flat());
  const needed = new Set(pointers.map((pointer) => pointer?.split("/")[2]));
  return h(
    "ol",
    { class: "plain", id: "tried" },
    all.map((step) =>
      h(
        "li",
        { class: "plain", "data-key": `tried ${step.Step}` },
        h("h3", {}, `${step.Step} (${step.Agent})`),
        step.NeverRuns ? h("p", {}, `It does not run: ${step.NeverRuns}.`) : null,
        step.RunsIf ? h("p", {}, `Whether it runs depends on ${step.RunsIf.join(", ")}.`) : null,
        call(step.Forward, `The call of ${step.Step}`),
        step.Undo ? [h("p", { class: "quiet" }, "Undo"), call(step.Undo, `The undo of ${step.Step}`)] : null,
        needed.has(step.Step) || outputs.get(step.Step)
          ? area(OUTPUT + step.Step, `Suppose this output of ${step.Step}, in JSON`, outputs.get(step.Step) ?? "", 2)
          : null,
      ),
    ),
  );
}

function call(one, name) {
  if (!one) return null;
  if (one.NoCall) return h("p", {}, `No call: ${one.NoCall}.`);
  if (one.Needs) return h("p", {}, `What it sends depends on ${one.Needs.join(", ")}.`);
  if (one.Unsendable) return notice("bad", h("p", {}, `Unsendable: ${one.Unsendable}.`));
  const cut = one.WholeBytes ? h("p", { class: "quiet" }, `The first part of ${one.WholeBytes.toLocaleString()} bytes.`) : null;
  const head = one.Workflow
    ? [`An order of ${one.Workflow}`]
    : [`${one.Method} ${one.URL}`, ...(one.Headers ?? []).map(({ Name, Value }) => `${Name}: ${Value}`)];
  const text = [...head, "", one.Document ?? one.Body].join("\n");
  return [h("pre", { tabindex: "0", role: "region", "aria-label": name }, text), cut];
}

function area(id, label, text, rows) {
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    h("textarea", { id, rows, spellcheck: "false", autocomplete: "off" }, text),
  );
}
