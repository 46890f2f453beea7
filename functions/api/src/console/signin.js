// The form for a token, where the API asks for one.

import { hasToken, setToken } from "./api.js";
import { byId, fragment, h } from "./dom.js";
import { heading, notice } from "./parts.js";

const TITLE = "Sign in";

/** The form. `done` is called once a token was given. */
export function signIn(done) {
  const submit = (event) => {
    event.preventDefault();
    const field = byId("token");
    field.value = field.value.trim();
    if (!event.target.reportValidity()) return;
    setToken(field.value);
    done();
  };
  return fragment(
    heading(TITLE),
    hasToken() ? h("div", { id: "problem" }, notice("bad", h("p", {}, "This token is not known. It may have been removed."))) : null,
    h("p", {}, "This server knows its callers by tokens."),
    h(
      "form",
      { class: "sign-in", onsubmit: submit },
      h(
        "div",
        { class: "field" },
        h("label", { for: "token" }, "Token"),
        h("input", {
          id: "token",
          type: "password",
          required: true,
          maxlength: "4096",
          autocomplete: "current-password",
          spellcheck: "false",
          "aria-describedby": "token-hint",
        }),
        h(
          "p",
          { class: "hint", id: "token-hint" },
          "Who runs the server makes one: stepwarden token add NAME --role ROLE. It is forgotten when you close this tab.",
        ),
      ),
      h("button", { type: "submit", class: "primary" }, TITLE),
    ),
  );
}

signIn.title = TITLE;

/** Shows the button that forgets the token, where there is one. */
export function showSignOut(done) {
  const button = byId("sign-out");
  button.hidden = !hasToken();
  button.onclick = () => {
    setToken("");
    done();
  };
}
