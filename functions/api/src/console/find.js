// Finds an order by the end of its id, as the console shows it. The API takes whole ids alone, so its newest orders are
// looked through. The same text may be a correlation id, so that is looked for too.

import { get, withQuery } from "./api.js";
import { announce, fragment, h } from "./dom.js";
import { copyButton } from "./ids.js";
import { heading, plural, state, table } from "./parts.js";
import { when } from "./time.js";

const END = /^[0-9a-f]{8,31}$/;
const PAGE = 100;
const PAGES = 10;

// What was found for the present address. The page polls, and a search costs many calls.
let found = null;

/** The end of an id that a text may be, without hyphens. */
export function endOf(text) {
  const digits = text.toLowerCase().replaceAll("-", "");
  return END.test(digits) ? digits : null;
}

export const find = {
  name: "find",
  title: ({ params }) => `Find ${textOf(params)}`,
  opened() {
    found = null;
    announce("The newest orders are looked through.");
  },
  async load({ params }, signal) {
    found ??= await look(textOf(params), signal);
    const { ended, correlated } = found;
    const others = correlated.filter(({ OrderID }) => OrderID !== ended[0]?.OrderID);
    if (ended.length === 1 && !others.length) return leave(`#/order/${ended[0].OrderID}`, signal);
    if (!ended.length && correlated.length) return leave(byCorrelation(textOf(params)), signal);
    return { ended, others: ended.length ? others : [] };
  },
  render({ ended, others }, { params, changed }) {
    const text = textOf(params);
    const again = () => {
      found = null;
      changed();
    };
    const rows = [
      ...ended.map((task) => ({ task, by: "the end of its id" })),
      ...others.map((task) => ({ task, by: "its correlation id" })),
    ];
    return fragment(
      heading(`Find ${text}`),
      h("p", { id: "verdict-find" }, verdict(text, ended, others)),
      table({
        caption: `Orders that ${text} may name`,
        hideCaption: true,
        rows,
        key: ({ task }) => task.OrderID,
        empty: "Give the whole id, or another end. “stepwarden list --all -q” prints all ids.",
        columns: [
          {
            name: "Order",
            isName: true,
            cell: ({ task }) =>
              h(
                "span",
                {},
                h("a", { class: "id", href: `#/order/${task.OrderID}` }, task.OrderID),
                copyButton(task.OrderID),
              ),
          },
          { name: "State", cell: ({ task }) => state(task.ProcessState) },
          { name: "Submitted", cell: ({ task }) => when(task.SubmittedAt, "brief") },
          { name: "Correlation id", kind: "text", cell: ({ task }) => task.CorrelationID ?? "–" },
          { name: "Found by", kind: "text", cell: ({ by }) => by },
        ],
      }),
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "button", onclick: again }, "Look again"),
        h("a", { class: "button", href: byCorrelation(text) }, "Look for it as a correlation id"),
      ),
    );
  },
};

const textOf = (params) => params.get("text") ?? "";

const byCorrelation = (text) => withQuery("#/orders", { correlation: text });

function verdict(text, ended, others) {
  const most = (PAGE * PAGES).toLocaleString();
  if (!ended.length) return `No order of the ${most} newest, and of the ${most} newest in Error, ends with ${text}.`;
  const ends = `${plural(ended.length, "order")} ${ended.length === 1 ? "ends" : "end"} with ${text}`;
  if (!others.length) return `${ends}. Choose one, or give more characters of its id.`;
  return `${ends}, and ${plural(others.length, "order")} ${others.length === 1 ? "has" : "have"} it as correlation id.`;
}

/** Opens the one address that is meant. The address of the search is not kept, so that Back leads to before it. */
function leave(hash, signal) {
  location.replace(hash);
  // The new view ends this one.
  return new Promise((_, end) => signal.addEventListener("abort", () => end(signal.reason)));
}

async function look(text, signal) {
  const end = endOf(text);
  const [newest, inError, correlated] = await Promise.all([
    end ? lookThrough({}, signal) : [],
    end ? lookThrough({ state: "Error" }, signal) : [],
    text ? get(withQuery("orders", { correlation: text, limit: PAGE }), signal) : { Orders: [] },
  ]);
  const all = new Map([...newest, ...inError].map((task) => [task.OrderID, task]));
  const ended = [...all.values()].filter(({ OrderID }) => OrderID.replaceAll("-", "").endsWith(end));
  return { ended, correlated: correlated.Orders };
}

/** The newest orders of a list. */
async function lookThrough(query, signal) {
  const all = [];
  let cursor = null;
  for (let page = 0; page < PAGES && (page === 0 || cursor); page += 1) {
    const { Orders, NextCursor } = await get(withQuery("orders", { ...query, limit: PAGE, cursor }), signal);
    all.push(...Orders);
    cursor = NextCursor;
  }
  return all;
}
