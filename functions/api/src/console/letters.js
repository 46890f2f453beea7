// The dead letters: messages that were delivered too often, and their outcomes.

import { get, withQuery } from "./api.js";
import { fragment, h } from "./dom.js";
import { orderLink } from "./ids.js";
import { heading, table } from "./parts.js";
import { when } from "./time.js";
import { OUTCOMES } from "./words.js";

const PAGE = 25;

export const letters = {
  name: "letters",
  title: () => "Dead letters",
  load: ({ params }, signal) => get(withQuery("dead-letters", { limit: PAGE, cursor: params.get("cursor") }), signal),
  render(page, { params }) {
    const next = page.NextCursor;
    return fragment(
      heading("Dead letters"),
      h(
        "p",
        { class: "lead" },
        "Messages that were delivered too often without success. Each was reconciled with its order; ",
        "an order that still needs it waits in Error.",
      ),
      table({
        caption: "Dead letters, the last settled first",
        hideCaption: true,
        rows: page.DeadLetters,
        key: (letter) => letter.MessageID,
        empty: params.get("cursor") ? "No older ones." : "None. Every message was handled.",
        columns: [
          { name: "Settled", isName: true, cell: (letter) => when(letter.SettledAt) },
          {
            name: "Queue",
            cell: (letter) => (letter.Queue === "Agent" ? `${letter.Agent} (agent)` : (letter.Queue ?? "not known")),
          },
          { name: "Order", cell: (letter) => (letter.OrderID ? orderLink(letter.OrderID) : "not known") },
          {
            name: "What became of it",
            cell: (letter) =>
              h(
                "span",
                {},
                OUTCOMES[letter.Outcome] ?? letter.Outcome,
                letter.Message ? h("span", { class: "quiet block" }, letter.Message) : null,
              ),
          },
          { name: "Delivered", kind: "num", cell: (letter) => `${letter.ReceiveCount} times` },
          { name: "Given up", cell: (letter) => when(letter.At, "brief") },
        ],
      }),
      pages(params, next, "#/dead-letters"),
    );
  },
};

/** Links to the first and the next page. The cursor is in the address, so a link to the page can be shared. */
export function pages(params, next, path) {
  const first = new URLSearchParams(params);
  first.delete("cursor");
  const following = new URLSearchParams(first);
  if (next) following.set("cursor", next);
  if (!next && !params.get("cursor")) return null;
  return h(
    "nav",
    { class: "pages", "aria-label": "Pages" },
    params.get("cursor")
      ? h("a", { class: "button", href: withQuery(path, Object.fromEntries(first)) }, "First page")
      : null,
    next
      ? h("a", { class: "button", rel: "next", href: withQuery(path, Object.fromEntries(following)) }, "Older →")
      : h("span", { class: "quiet" }, "This is the end."),
  );
}
