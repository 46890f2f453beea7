// The alerts: the causes that make orders wait now, and those that ended last. Sinks are told of the same.

import { get, withQuery } from "./api.js";
import { fragment, h } from "./dom.js";
import { orderLink } from "./ids.js";
import { count, heading, panel, table } from "./parts.js";
import { when } from "./time.js";
import { local } from "./words.js";

export const alerts = {
  name: "alerts",
  title: () => "Alerts",
  load: (_route, signal) => get("alerts", signal),
  render({ Alerts }) {
    return fragment(
      heading("Alerts"),
      h("p", { class: "lead" }, "One for each cause that makes orders wait, and not one for each order."),
      panel("on", "On now", list("Causes that are on", "None. Nothing makes orders wait for you.", Alerts.filter(isOn))),
      panel("ended", "Ended last", list("Causes that are over", "None.", Alerts.filter((one) => !isOn(one)))),
    );
  },
};

const isOn = ({ EndedAt }) => !EndedAt;

/** What happens and what to do; of a cause that is gone, only since when. */
function words({ Text, ToDo, GoneSince, EndedAt }) {
  if (GoneSince && !EndedAt) return `No longer since ${GoneSince}. It is over after a minute.`;
  return EndedAt ? Text : `${Text} ${ToDo}`;
}

/** How many are on. */
export const countOn = ({ Alerts }) => Alerts.filter(isOn).length;

function list(caption, empty, rows) {
  const areOn = rows.some(isOn);
  return table({
    caption,
    hideCaption: true,
    rows,
    key: ({ Cause, Since }) => `${Cause} ${Since}`,
    empty,
    columns: [
      {
        name: "Cause",
        isName: true,
        kind: "text",
        cell: (one) => [
          causeLink(one.Cause),
          h("span", { class: "quiet block" }, local(words(one))),
          one.NotTold?.length
            ? h("span", { class: "block" }, `Not told to ${one.NotTold.join(", ")}. It is tried again; the log says why.`)
            : null,
        ],
      },
      {
        name: "Orders",
        kind: "num",
        cell: ({ Count, AtLeast, OrderID }) => [
          Count ? count(Count, AtLeast) : "–",
          OrderID ? h("span", { class: "block" }, "such as ", orderLink(OrderID)) : null,
        ],
      },
      { name: "Since", kind: "still", cell: ({ Since }) => when(Since) },
      ...(areOn ? [] : [{ name: "Ended", kind: "still", cell: ({ EndedAt }) => when(EndedAt) }]),
    ],
  });
}

/** A cause leads to what it holds up. */
function causeLink(cause) {
  const [kind, name, ...rest] = cause.split("/");
  const step = rest.join("/");
  const to = {
    order: () => withQuery("#/orders", { state: "Error", reason: name, step: step === "-" ? "" : step }),
    service: () => `#/service/${encodeURIComponent(name)}`,
    approval: () => withQuery("#/orders", { approval: "true", workflow: name }),
    late: () => withQuery("#/orders", { late: "true", workflow: name }),
    contradicted: () => withQuery("#/orders", { contradicted: "true", workflow: name }),
    "dead-letter": () => "#/dead-letters",
  }[kind];
  return to ? h("a", { href: to() }, h("strong", {}, cause)) : h("strong", {}, cause);
}
