// A workflow as a drawing: boxes from top to bottom, level by level, with arrows from each step to those that wait for
// it. The table beside it says the same, so a screen reader hears one sentence.

import { h } from "./dom.js";

const BOX_HEIGHT = 46;
const GAP = { across: 22, down: 44 };
// An arrow over several levels passes between the boxes of each.
const LANE = 12;
const CHARACTER = 7.6;
const WIDTH = { least: 112, most: 232, around: 26 };
const EDGE = 4;
const SWEEPS = 6;

/** The drawing of the steps of a workflow. */
export function drawing(workflow) {
  const steps = workflow.Steps;
  const longest = Math.max(1, ...steps.flatMap((step) => [step.Name.length, marked(step).length]));
  const width = Math.min(WIDTH.most, Math.max(WIDTH.least, longest * CHARACTER + WIDTH.around));
  const levels = arranged(layered(steps));
  const whole = placed(levels, width);
  const size = { width: whole + 2 * EDGE, height: levels.length * (BOX_HEIGHT + GAP.down) - GAP.down + 2 * EDGE };
  const items = levels.flat();
  return h(
    "div",
    { class: "drawing", role: "region", tabindex: "0", "aria-label": `Drawing of ${named(workflow)}` },
    h(
      "svg",
      { ...size, viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": inWords(steps) },
      h("defs", {}, arrowhead()),
      h("g", { transform: `translate(${EDGE} ${EDGE})` }, items.map(arrows), items.map((item) => box(item, width))),
    ),
  );
}

/** `order@2`. */
export function named(workflow) {
  return `${workflow.Name}@${workflow.Version}`;
}

/** The levels: each step stands in the first one after all its predecessors, with a lane in each level that an arrow
 * passes. */
function layered(steps) {
  const items = new Map(steps.map((step) => [step.Name, { step, level: 0, to: [], from: [] }]));
  // So often at the most, however the steps are sorted.
  for (let round = 0; round < steps.length; round += 1)
    for (const step of steps)
      for (const name of step.After)
        items.get(step.Name).level = Math.max(items.get(step.Name).level, (items.get(name)?.level ?? -1) + 1);
  const levels = [];
  const add = (item) => (levels[item.level] ??= []).push(item);
  for (const item of items.values()) add(item);
  for (const item of items.values()) {
    for (const name of item.step.After) {
      let last = items.get(name);
      if (!last) continue;
      for (let level = last.level + 1; level < item.level; level += 1) {
        const lane = { step: null, level, to: [], from: [] };
        join(last, lane);
        add(lane);
        last = lane;
      }
      join(last, item);
    }
  }
  return levels.filter(Boolean);
}

function join(earlier, later) {
  earlier.to.push(later);
  later.from.push(earlier);
}

/** Each level in the order of its neighbours, down and up again: fewer arrows cross. */
function arranged(levels) {
  const number = () => levels.forEach((level) => level.forEach((item, place) => (item.place = place / level.length)));
  const mean = (item, side) =>
    item[side].length ? item[side].reduce((sum, other) => sum + other.place, 0) / item[side].length : item.place;
  number();
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2 ? "to" : "from";
    for (const level of sweep % 2 ? [...levels].reverse() : levels) {
      const means = new Map(level.map((item) => [item, mean(item, side)]));
      level.sort((one, other) => means.get(one) - means.get(other));
      level.forEach((item, place) => (item.place = (place + 0.5) / level.length));
    }
  }
  return levels;
}

/** Gives each item its middle and its top. Returns the width of the drawing. */
function placed(levels, width) {
  const of = (item) => (item.step ? width : LANE);
  const widths = levels.map((level) => level.reduce((sum, item) => sum + of(item) + GAP.across, -GAP.across));
  const whole = Math.max(...widths, 0);
  levels.forEach((level, depth) => {
    let x = (whole - widths[depth]) / 2;
    for (const item of level) {
      [item.x, item.y] = [x + of(item) / 2, depth * (BOX_HEIGHT + GAP.down)];
      x += of(item) + GAP.across;
    }
  });
  return whole;
}

function box({ step, x, y }, width) {
  if (!step) return null;
  const room = Math.floor((width - WIDTH.around) / CHARACTER);
  const text = (name, kind, down) => h("text", { class: kind, x, y: y + down }, shortened(name, room));
  return h(
    "g",
    { "data-step": step.Name },
    h("title", {}, `${step.Name}, agent ${marked(step)}`),
    h("rect", { class: "box", x: x - width / 2, y, width, height: BOX_HEIGHT, rx: "8" }),
    text(step.Name, "box-name", 20),
    text(marked(step), "box-agent", 36),
  );
}

/** The agent of a step, and behind it what is special about the step. */
function marked({ Agent, When, Optional, Pivot, NoUndo }) {
  const marks = [When ? "when" : null, Optional ? "optional" : null, Pivot ? "pivot" : null, NoUndo ? "no undo" : null];
  const set = marks.filter(Boolean);
  return set.length ? `${Agent} (${set.join(", ")})` : Agent;
}

function shortened(name, room) {
  return name.length > room ? `${name.slice(0, room - 1)}…` : name;
}

function arrows(item) {
  const bottom = item.y + BOX_HEIGHT;
  const lane = item.step ? null : h("path", { class: "arrow", d: `M${item.x} ${item.y}V${bottom}` });
  const ways = item.to.map((later) => {
    // The head of the arrow is drawn beyond the end of the line.
    const end = later.y - (later.step ? 7 : 0);
    const middle = (bottom + end) / 2;
    return h("path", {
      class: "arrow",
      d: `M${item.x} ${bottom}C${item.x} ${middle} ${later.x} ${middle} ${later.x} ${end}`,
      "marker-end": later.step ? "url(#arrowhead)" : null,
    });
  });
  return [lane, ways];
}

function arrowhead() {
  const size = { markerWidth: "8", markerHeight: "8", refX: "0", refY: "4", markerUnits: "userSpaceOnUse" };
  return h("marker", { id: "arrowhead", ...size, orient: "auto" }, h("path", { class: "head-of", d: "M0 0L7 4L0 8Z" }));
}

function inWords(steps) {
  const after = (step) => (step.After.length ? `${step.Name} after ${step.After.join(" and ")}` : `${step.Name} first`);
  return `${steps.map(after).join(", ")}.`;
}
