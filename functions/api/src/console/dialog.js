// Dialogs, of the browser's own kind: it keeps the focus inside, closes at Esc, and gives the focus back.

import { byId, h, morph } from "./dom.js";

const NAME = "stepwarden.by";

/** Who acts, as it was given the last time. A browser may keep nothing; then it is asked again. */
export function rememberedName() {
  try {
    return localStorage.getItem(NAME) ?? "";
  } catch {
    return "";
  }
}

/** Keeps who acts for the next time. */
export function rememberName(name) {
  try {
    localStorage.setItem(NAME, name);
  } catch {
    // Then it is asked again.
  }
}

/**
 * Opens a dialog. `draw()` gives what is in it, and is called again by the `redraw` that is returned; `onclose` is
 * called once it is closed, however that came.
 */
export function open({ title, draw, onclose }) {
  const body = h("div", { class: "body" });
  const dialog = h(
    "dialog",
    { class: "dialog", "aria-labelledby": "dialog-head" },
    h("h2", { id: "dialog-head", tabindex: "-1" }, title),
    body,
  );
  const opener = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    // The button that opened it may be gone with the state that allowed it.
    if (!opener?.isConnected || opener === document.body) byId("head")?.focus();
    else opener.focus();
    onclose?.();
  });
  const redraw = () => morph(body, h("div", {}, draw()));
  redraw();
  document.body.append(dialog);
  dialog.showModal();
  return {
    redraw,
    close: () => dialog.close(),
    focusHead: () => byId("dialog-head")?.focus(),
    isOpen: () => dialog.open,
  };
}

/** The fields of an operator's action: who and why. */
export function whoAndWhy(reason) {
  return [
    h(
      "div",
      { class: "field" },
      h("label", { for: "by" }, "Your name"),
      h("input", {
        id: "by",
        name: "by",
        required: true,
        maxlength: "256",
        autocomplete: "name",
        value: rememberedName(),
      }),
    ),
    h(
      "div",
      { class: "field" },
      h("label", { for: "reason" }, "Reason"),
      h("input", {
        id: "reason",
        name: "reason",
        required: true,
        maxlength: "200",
        autocomplete: "off",
        value: reason ?? "",
        "aria-describedby": "reason-hint",
      }),
      h("p", { class: "hint", id: "reason-hint" }, "It stays in the order's history with your name."),
    ),
  ];
}

/** What stands in those fields; the name is kept for the next time. */
export function wish(form) {
  const By = form.elements.by.value.trim();
  const Reason = form.elements.reason.value.trim();
  // A text of blanks passes `required`.
  for (const name of ["by", "reason"]) {
    const field = form.elements[name];
    field.value = field.value.trim();
  }
  if (!form.reportValidity()) return null;
  rememberName(By);
  return { By, Reason };
}
