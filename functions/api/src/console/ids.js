// The id of an order: its random part is shown, since ids of one minute begin alike. The whole id is its title.

import { announce, h } from "./dom.js";

const SHOWN = 8;
const COPIED_MS = 2_000;

/** The random part: the end. */
export function shortId(id) {
  return id.slice(-SHOWN);
}

/** A link to an order, and a button that copies the whole id. */
export function orderLink(id) {
  const link = h(
    "a",
    { class: "id", href: `#/order/${encodeURIComponent(id)}`, title: id, "aria-label": `order ${shortId(id)}` },
    shortId(id),
  );
  return h("span", { class: "order-id" }, link, copyButton(id));
}

/** Copies the whole id. */
export function copyButton(id) {
  return h(
    "button",
    {
      type: "button",
      class: "copy",
      title: "Copy the whole id",
      "aria-label": `Copy the id of order ${shortId(id)}`,
      onclick: (event) => copy(id, event.currentTarget),
    },
    h(
      "svg",
      { viewBox: "0 0 16 16", width: "14", height: "14", "aria-hidden": "true", focusable: "false" },
      h("rect", { class: "sheet", x: "1.5", y: "4.5", width: "9", height: "10", rx: "1.5" }),
      h("path", { class: "sheet", d: "M5.5 4.5V3A1.5 1.5 0 0 1 7 1.5h6A1.5 1.5 0 0 1 14.5 3v7a1.5 1.5 0 0 1-1.5 1.5h-2.5" }),
    ),
  );
}

async function copy(id, button) {
  try {
    // A page that is not on this machine and not on https has no clipboard.
    await (navigator.clipboard ? navigator.clipboard.writeText(id) : copySelected(id, button));
  } catch {
    announce(`The browser does not copy. The id is ${id}`);
    return;
  }
  announce(`Copied ${id}`);
  button.dataset.copied = "yes";
  setTimeout(() => delete button.dataset.copied, COPIED_MS);
}

/** Copies in the old way. Throws if the browser refuses. */
function copySelected(text, button) {
  const field = h("textarea", { readonly: true, class: "unseen", "aria-hidden": "true" }, text);
  button.after(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  button.focus();
  if (!isCopied) throw new Error("not copied");
}
