// The remote services on the first page, and the operator's word that the rejections of one are right.

import { Problem, post } from "./api.js";
import { inWords } from "./actions.js";
import { open, whoAndWhy, wish } from "./dialog.js";
import { announce, h } from "./dom.js";
import { health, notice, plural, probe } from "./parts.js";
import { when } from "./time.js";

/** Whether the orders of a service wait for an operator. */
export function needsOperator(service) {
  return Boolean(service.Reason) && service.Reason !== "failing";
}

/** One line for each service, with its problem and the remedy. */
export function services(all, changed) {
  if (!all.length) return h("p", { class: "empty" }, "No service is known.");
  return h(
    "ul",
    { class: "services" },
    all.map((service) =>
      h(
        "li",
        { "data-key": service.Service, "data-state": service.State },
        h("span", { class: "service-name" }, serviceLink(service.Service)),
        health(service),
        h("span", { class: "quiet" }, history(service)),
        probe(service) ? h("span", { class: "probe" }, probe(service)) : null,
        service.Problem ? h("span", { class: "problem" }, service.Problem) : null,
        service.OrdersWaiting ? h("span", { class: "quiet" }, waiting(service.OrdersWaiting)) : null,
        needsOperator(service)
          ? h("p", { class: "todo" }, h("strong", {}, "What to do: "), service.ToDo)
          : null,
        acceptButton(service, changed),
      ),
    ),
  );
}

/** A link to the page of a service. */
export function serviceLink(name) {
  return h("a", { href: `#/service/${encodeURIComponent(name)}` }, name);
}

/** The button that accepts rejections, if a service is held back for them. */
export function acceptButton(service, changed) {
  if (service.Reason !== "rejections") return null;
  return h(
    "button",
    { type: "button", "data-key": "accept-rejections", onclick: () => acceptRejections(service, changed) },
    "Accept rejections…",
  );
}

/** The orders that wait, in words. */
export function waiting({ Count, AtLeast }) {
  const some = plural(Count, "order");
  return AtLeast ? `at least ${some} wait for it` : `${some} ${Count === 1 ? "waits" : "wait"} for it`;
}

function history(service) {
  if (service.RejectionsAccepted) return accepted(service);
  if (service.State !== "Closed") {
    const began = service.OutageSince ? ["since ", when(service.OutageSince, "brief"), ", "] : [];
    return [...began, `${plural(service.FailuresInARow ?? 1, "failure")} in a row, the last `, when(service.Since, "brief")];
  }
  return service.Since ? ["since ", when(service.Since, "brief")] : "never failed";
}

/** Who accepted the rejections of a service. */
export function accepted({ RejectionsAccepted: { By, At } }) {
  return ["its rejections count, accepted by ", By, " ", when(At, "brief")];
}

/** Asks for name and reason, and sends them. */
function acceptRejections({ Service }, changed) {
  const it = { error: null, sending: false };
  const submit = async (event) => {
    event.preventDefault();
    const who = wish(event.target);
    if (!who || it.sending) return;
    it.sending = true;
    dialog.redraw();
    try {
      await post(`services/${encodeURIComponent(Service)}/accept-rejections`, who);
      announce(`The rejections of ${Service} count. Its orders go on.`);
      dialog.close();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      it.error = inWords(error, "It is safe to send it again.");
      it.sending = false;
      announce(it.error);
      dialog.redraw();
    }
  };
  const lines = [
    "The waiting orders go on. A step that is rejected counts: its order is undone, or held.",
    "Once most answers are no rejections any more, the service can be held back again.",
  ];
  const dialog = open({
    title: `Accept the rejections of ${Service}`,
    onclose: changed,
    draw: () => [
      it.error ? h("div", { id: "dialog-error" }, notice("bad", h("p", {}, it.error))) : null,
      h(
        "form",
        { "data-key": "ask", onsubmit: submit },
        h(
          "div",
          { class: "consequences", id: "consequences" },
          h("h3", {}, "What will happen"),
          h(
            "ul",
            {},
            lines.map((line) => h("li", {}, line)),
          ),
        ),
        whoAndWhy("", "It is shown with your name while it holds."),
        h(
          "div",
          { class: "buttons" },
          h(
            "button",
            { type: "submit", class: "danger", disabled: it.sending, "aria-describedby": "consequences" },
            it.sending ? "Sending…" : "Accept rejections",
          ),
          h("button", { type: "button", onclick: () => dialog.close() }, "Leave it"),
        ),
      ),
    ],
  });
}
