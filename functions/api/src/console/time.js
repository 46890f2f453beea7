// Times for readers: in the zone of this machine, with the age. The title has the exact time.

import { h } from "./dom.js";

const CLOCK = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });
const MINUTE = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const DAY_MS = 86_400_000;

/** Epoch milliseconds of an API time: a text, or a number if it is a key. */
export function ms(time) {
  return typeof time === "number" ? time : Date.parse(time);
}

/** The zone of this machine, as its distance from UTC: `UTC`, `UTC+1`, `UTC-3:30`. */
export function zone() {
  const away = -new Date().getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(away) / 60), Math.abs(away) % 60];
  return `UTC${away ? (away < 0 ? "-" : "+") + hours : ""}${minutes ? `:${minutes}` : ""}`;
}

/** `12:03:20`, with the day if it is not today. */
export function clock(time) {
  const at = new Date(ms(time));
  const day = at.toDateString() === new Date().toDateString() ? "" : `${DAY.format(at)}, `;
  return day + CLOCK.format(at);
}

/** `12:03`. */
export function minute(time) {
  return MINUTE.format(new Date(ms(time)));
}

/** `12:03:20.007`, for events within one second. */
export function precise(time) {
  const at = new Date(ms(time));
  return `${clock(at.getTime())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** A duration: `340 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 days`. */
export function length(duration_ms) {
  const length_ms = Math.max(0, duration_ms);
  if (length_ms < 1000) return `${Math.round(length_ms)} ms`;
  if (length_ms < 10_000) return `${(length_ms / 1000).toFixed(1)} s`;
  const s = Math.round(length_ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return two(Math.floor(s / 60), "min", s % 60, "s");
  if (length_ms < 2 * DAY_MS) return two(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
  return `${Math.round(length_ms / DAY_MS)} days`;
}

function two(large, unit, small, smaller) {
  return small ? `${large} ${unit} ${small} ${smaller}` : `${large} ${unit}`;
}

/** The distance of a time from now: `4 s ago`, `in 20 s`, `just now`. */
export function relative(time) {
  const away_ms = ms(time) - Date.now();
  if (Math.abs(away_ms) < 1000) return "just now";
  const coarse_ms = Math.round(Math.abs(away_ms) / 1000) * 1000;
  const words = length(coarse_ms).replace(/\.0 s$/, " s");
  return away_ms > 0 ? `in ${words}` : `${words} ago`;
}

/** A time with its age: `12:03:20 · 4 s ago`. `brief` leaves out the clock, `exact` gives milliseconds. */
export function when(time, kind) {
  if (time === null || time === undefined) return "–";
  const iso = new Date(ms(time)).toISOString();
  if (kind === "exact") return h("time", { datetime: iso, title: iso }, precise(time));
  if (kind === "clock") return h("time", { datetime: iso, title: iso }, clock(time));
  if (kind === "brief")
    return h("time", { datetime: iso, title: `${iso} (${clock(time)})`, "data-tick": "relative" }, relative(time));
  const ago = h("span", { class: "ago", "data-tick": "relative", "data-at": iso }, relative(time));
  return h("time", { datetime: iso, title: iso }, clock(time), " ", ago);
}

/** Updates all relative times on the page. Called once a second. */
export function tick(root) {
  for (const element of root.querySelectorAll("[data-tick]")) {
    const text = relative(element.dataset.at ?? element.getAttribute("datetime"));
    if (element.textContent !== text) element.firstChild.nodeValue = text;
  }
}
