// Native dialogs of the browser: a dialog keeps the focus inside, closes at Esc, and returns the focus.

import { byId, h, morph } from "./dom.js";

const NAME = "stepwarden.by";

/** The operator's name from the last action. If the browser stores nothing, the dialog asks again. */
export function rememberedName() {
  try {
    return localStorage.getItem(NAME) ?? "";
  } catch {
    return "";
  }
}

/** Stores the operator's name for the next action. */
export function rememberName(name) {
  try {
    localStorage.setItem(NAME, name);
  } catch {
    // The next dialog asks for the name again.
  }
}

/**
 * Opens a dialog. `draw()` returns its content. The returned `redraw` calls `draw()` again. `onclose` is called once
 * the dialog is closed, for any cause.
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
    // The button that opened the dialog may be gone after a change of state.
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

/** The fields of an operator's action: name and reason. */
export function whoAndWhy(reason, hint = "It stays in the order's history with your name.", label = "Reason") {
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
      h("label", { for: "reason" }, label),
      h("input", {
        id: "reason",
        name: "reason",
        required: true,
        maxlength: "200",
        autocomplete: "off",
        value: reason ?? "",
        "aria-describedby": "reason-hint",
      }),
      h("p", { class: "hint", id: "reason-hint" }, hint),
    ),
  ];
}

/** The values of those fields. The name is stored for the next action. */
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
