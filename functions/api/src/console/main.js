// Chooses the view and keeps it up to date. It polls every two seconds, and less often while the page is hidden. It
// reports an API that does not answer. The view changes in place, so focus, scroll and typed text stay.

import { alerts, countOn } from "./alerts.js";
import { get, Problem, withQuery } from "./api.js";
import { byId, fragment, h, morph, announce } from "./dom.js";
import { endOf, find } from "./find.js";
import { job, jobs } from "./jobs.js";
import { letters } from "./letters.js";
import { numbers } from "./numbers.js";
import { order } from "./order.js";
import { orders } from "./orders.js";
import { overview } from "./overview.js";
import { heading, notice } from "./parts.js";
import { plan } from "./plan.js";
import { service } from "./service.js";
import { showSignOut, signIn } from "./signin.js";
import { clock, tick, zone } from "./time.js";
import { workflow, workflows } from "./workflows.js";

const EVERY_MS = 2_000;
const EVERY_HIDDEN_MS = 10_000;
// How often the alerts are counted, for the title.
const ALERTS_EVERY_MS = 10_000;
// The delays while the API is down: short at first, at most this long.
const RETRY_MS_MAX = 10_000;

const ROUTES = [
  [/^$/, overview],
  [/^numbers$/, numbers],
  [/^alerts$/, alerts],
  [/^find$/, find],
  [/^orders$/, orders],
  [/^order\/([^/]+)$/, order],
  [/^dead-letters$/, letters],
  [/^jobs$/, jobs],
  [/^jobs\/new$/, plan],
  [/^job\/([^/]+)$/, job],
  [/^service\/([^/]+)$/, service],
  [/^workflows$/, workflows],
  [/^workflow\/([^/]+)$/, workflow],
];
// The list to which a view belongs.
const BACK = {
  find: "#/orders",
  orders: "#/orders",
  order: "#/orders",
  letters: "#/dead-letters",
  jobs: "#/jobs",
  plan: "#/jobs",
  workflow: "#/workflows",
};
// The entry of the navigation for a view without one of its own.
const WITHIN = {
  alerts: "overview",
  find: "orders",
  order: "orders",
  plan: "jobs",
  service: "overview",
  workflow: "workflows",
};
const ORDER_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

let route = null;
let data = null;
let timer = 0;
let asking = null;
let away = null;
let title = "";
let alertsOn = 0;
let counted = 0;

function routeOf(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const params = new URLSearchParams(query);
  for (const [pattern, view] of ROUTES) {
    const match = pattern.exec(path);
    if (match) return { view, params, id: match[1] ? decoded(match[1]) : null };
  }
  return null;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const context = () => ({ params: route.params, id: route.id, go, redraw, changed: refresh });

function go(hash) {
  if (location.hash === hash) refresh();
  else location.hash = hash;
}

/** Opens the view of the address. */
function navigate() {
  // A link to a part of the page opens no view.
  if (location.hash && !location.hash.startsWith("#/")) return;
  route = routeOf(location.hash);
  data = null;
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === (WITHIN[route?.view.name] ?? route?.view.name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
  if (!route) {
    show(
      fragment(
        heading("Nothing here"),
        h("p", {}, "This address names no view. ", h("a", { href: "#/" }, "To the overview")),
      ),
      "Nothing here",
      true,
    );
    clearTimeout(timer);
    return;
  }
  route.view.opened?.();
  route.isNew = true;
  refresh();
}

/** Polls now, and again after a delay. */
async function refresh() {
  clearTimeout(timer);
  asking?.abort();
  if (!route) return;
  const mine = new AbortController();
  const of = route;
  asking = mine;
  try {
    const fresh = await of.view.load(of, mine.signal);
    if (mine.signal.aborted) return;
    data = { fresh };
    showSignOut(navigate);
    back();
    redraw();
    countAlerts(of, fresh);
    schedule(document.hidden ? EVERY_HIDDEN_MS : EVERY_MS);
  } catch (error) {
    if (mine.signal.aborted) return;
    if (!(error instanceof Problem)) {
      live("broken", "this page failed");
      throw error;
    }
    failed(error);
  }
}

function schedule(after_ms) {
  clearTimeout(timer);
  timer = setTimeout(refresh, after_ms);
}

function redraw() {
  if (!route || !data) return;
  const isNew = route.isNew;
  route.isNew = false;
  show(route.view.render(data.fresh, context()), route.view.title(route), isNew);
}

/** Counts the alerts that are on: the title of every page has their number. */
async function countAlerts({ view }, fresh) {
  const areShown = view === alerts && fresh;
  if (!areShown && Date.now() < counted + ALERTS_EVERY_MS) return;
  counted = Date.now();
  try {
    alertsOn = countOn(areShown ? fresh : await get("alerts"));
    entitle();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    // Some callers may not see them. The page itself says so when the API does not answer.
    if (error.status === 401 || error.status === 403) forgetAlerts();
  }
}

function forgetAlerts() {
  alertsOn = 0;
  entitle();
}

function entitle() {
  document.title = `${alertsOn ? `(${alertsOn}) ` : ""}${title} · Stepwarden`;
}

function show(content, newTitle, isNew) {
  const view = byId("view");
  const focused = document.activeElement;
  if (isNew) view.replaceChildren(content);
  else morph(view, content);
  view.dataset.shown = location.hash || "#/";
  title = newTitle;
  entitle();
  // A reader starts a new page at its heading. The same holds if the focused element is gone, such as a button that the
  // state no longer allows.
  if ((isNew && shownOnce) || !focused?.isConnected) byId("head")?.focus({ preventScroll: true });
  shownOnce = true;
}

let shownOnce = false;

// ---- the API does not answer, or refuses a request

function failed(problem) {
  if (problem.isAway || problem.status >= 500 || problem.status === 429) {
    gone(problem);
    return;
  }
  back();
  if (problem.asksForToken) {
    data = null;
    // The next caller may see others.
    counted = 0;
    forgetAlerts();
    showSignOut(navigate);
    show(signIn(navigate), signIn.title, true);
    return;
  }
  // The view stays the same: an order that was just accepted appears once it is stored.
  data = null;
  const isRefused = problem.status === 401 || (problem.status === 403 && !problem.type.endsWith("/problems/forbidden"));
  const words = isRefused ? "You may not see this." : problem.message;
  const more =
    problem.status === 404 && route.view === order
      ? h(
          "p",
          {},
          h("a", { href: `#/orders?correlation=${encodeURIComponent(route.id)}` }, "Look for it as a correlation id"),
        )
      : null;
  countAlerts(route, null);
  const isNew = route.isNew;
  route.isNew = false;
  show(
    fragment(
      heading(route.view.title(route)),
      h("div", { id: "problem" }, notice("bad", h("p", {}, `${sentence(words)}`))),
      more,
      h("p", {}, h("a", { href: BACK[route.view.name] ?? "#/" }, "Back to the list")),
    ),
    route.view.title(route),
    isNew,
  );
  if (isNew) announce(words);
  schedule(EVERY_HIDDEN_MS);
}

function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

function gone(problem) {
  away = { since: away?.since ?? Date.now(), tries: (away?.tries ?? 0) + 1 };
  if (route.isNew) {
    route.isNew = false;
    show(
      fragment(heading(route.view.title(route)), h("p", { class: "empty" }, "Nothing could be read yet.")),
      route.view.title(route),
      true,
    );
  }
  const again_ms = Math.min(RETRY_MS_MAX, 1_000 * 2 ** away.tries);
  const line = byId("away");
  if (line.hidden) {
    const what = data ? "What you see is from before." : "";
    line.replaceChildren(
      h(
        "p",
        {},
        h("strong", {}, "The API does not answer. "),
        `Since ${clock(away.since)}: ${sentence(problem.message)} ${what} It is asked again by itself. `,
      ),
      h("button", { type: "button", onclick: refresh }, "Ask now"),
    );
    line.hidden = false;
    byId("view").classList.add("stale");
  }
  live("away", `no answer since ${clock(away.since)}`);
  schedule(document.hidden ? EVERY_HIDDEN_MS : again_ms);
}

function back() {
  if (away) {
    away = null;
    byId("away").hidden = true;
    byId("away").replaceChildren();
    byId("view").classList.remove("stale");
    announce("The API answers again.");
    warn();
  }
  live("live", "live");
}

/** Warns of stand-ins. An API that is gone is asked again when it is back: it may be another one then. */
function warn() {
  get("health").then(({ StandIns }) => (byId("stand-ins").hidden = !StandIns), () => {});
}

function live(state, text) {
  const element = byId("live");
  element.dataset.state = state;
  if (byId("live-text").textContent !== text) byId("live-text").textContent = text;
}

// ---- keyboard, search, time

byId("zone").textContent = `Times are in ${zone()}, the zone of this machine.`;

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, select, textarea, dialog");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  event.preventDefault();
  byId("find-text").focus();
});

byId("find-text").addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  event.target.value = "";
  byId("head")?.focus();
});

byId("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId("find-text").value.trim();
  if (!text) return;
  byId("find-text").value = "";
  if (ORDER_ID.test(text.toLowerCase())) go(`#/order/${text.toLowerCase()}`);
  else if (endOf(text)) go(withQuery("#/find", { text }));
  else go(`#/orders?${new URLSearchParams({ correlation: text })}`);
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("view").focus();
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
addEventListener("hashchange", navigate);
setInterval(() => tick(document.body), 1_000);
warn();
navigate();
