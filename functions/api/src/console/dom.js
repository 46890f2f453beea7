// All elements are made here, from tags and texts. The content of an order is never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "rect", "path", "line", "circle", "title", "desc", "defs", "pattern", "text", "marker"]);
// Handlers and the state of fields are properties. As attributes they would be inline script or a mere default.
const PROPERTIES = [
  "onclick",
  "onsubmit",
  "onchange",
  "oninput",
  "oncancel",
  "onclose",
  "onkeydown",
  "checked",
  "indeterminate",
];

/** An element: `h("a", {href: "#/"}, "Overview")`. Properties that are null, undefined or false are left out. */
export function h(tag, props, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (PROPERTIES.includes(name)) element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** A list of nodes without a parent of its own. */
export function fragment(...children) {
  const nodes = document.createDocumentFragment();
  append(nodes, children);
  return nodes;
}

/**
 * Makes the children of `element` equal to `wanted`, and keeps every unchanged node. So focus, selection, scroll and
 * typed text stay. Children with an `id` or a `data-key` are found again after a move.
 */
export function morph(element, wanted) {
  const nodes = [...wanted.childNodes];
  const keyed = new Map();
  for (const child of element.children) {
    const key = keyOf(child);
    if (key) keyed.set(key, child);
  }
  let at = element.firstChild;
  for (const node of nodes) {
    const key = keyOf(node);
    const found = key ? keyed.get(key) : at && !keyOf(at) ? at : null;
    if (found && alike(found, node)) {
      if (found === at) at = at.nextSibling;
      else element.insertBefore(found, at);
      update(found, node);
    } else {
      element.insertBefore(node, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key || null : null;
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

function update(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  attributes(old, fresh);
  for (const name of PROPERTIES) {
    if (name in fresh && old[name] !== fresh[name]) old[name] = fresh[name];
  }
  // A field with the focus keeps the user's text.
  if (old.nodeName !== "TEXTAREA") morph(old, fresh);
}

function attributes(old, fresh) {
  // The reader opens and closes these.
  const kept = old.nodeName === "DETAILS" || old.nodeName === "DIALOG" ? "open" : null;
  for (const { name } of [...old.attributes]) {
    if (name !== kept && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== kept && old.getAttribute(name) !== value) {
      old.setAttribute(name, value);
      if (name === "value") old.value = value;
    }
  }
}

/** The element with this id. The page has it. */
export function byId(id) {
  return document.getElementById(id);
}

let announced = 0;

/** Announces a text to a screen reader. Repeated words are announced again. */
export function announce(text) {
  announced += 1;
  byId("announce").textContent = text + (announced % 2 ? "" : "\u00a0");
}
