// Calls the API that served this page. Addresses are relative, so a stage or a proxy may precede the path.

const PATIENCE_MS = 10_000;
// Answers with an entity tag, by path. For a repeated request the API answers 304 if the resource did not change.
const known = new Map();
const KNOWN_MAX = 50;
const TOKEN = "stepwarden.token";
let token = stored();

/** The API answered with a problem. `status` 0: it did not answer. */
export class Problem extends Error {
  constructor(status, document, tag) {
    super(document.detail ?? document.title ?? `the API answered ${status}`);
    this.status = status;
    this.type = String(document.type ?? "");
    this.field = document.field ?? null;
    this.tag = tag ?? null;
  }

  /** The API asks who calls. */
  get asksForToken() {
    return this.type.endsWith("/problems/unauthenticated");
  }

  /** The API sent no answer, or a proxy answered for it. The console does not know the state of the API. */
  get isAway() {
    return this.status === 0 || this.status === 502 || this.status === 504;
  }
}

function stored() {
  try {
    return sessionStorage.getItem(TOKEN) ?? "";
  } catch {
    return "";
  }
}

/** Sends this token with each call from now on, until the tab is closed. An empty one is none. */
export function setToken(text) {
  token = text;
  known.clear();
  forGood.clear();
  try {
    if (text) sessionStorage.setItem(TOKEN, text);
    else sessionStorage.removeItem(TOKEN);
  } catch {
    // It is kept until the page is loaded again.
  }
}

/** Whether calls have a token. */
export function hasToken() {
  return token !== "";
}

/** Reads `path`, such as `orders/1`. Returns the JSON. If it has an entity tag, `tagOf` returns the tag. */
export async function get(path, signal) {
  const before = known.get(path);
  const headers = before ? { "If-None-Match": before.tag } : {};
  const response = await call(path, { headers, signal });
  if (response.status === 304 && before) return before.body;
  const body = await bodyOf(response);
  const tag = response.headers.get("ETag");
  if (tag) {
    known.delete(path);
    known.set(path, { tag, body });
    if (known.size > KNOWN_MAX) known.delete(known.keys().next().value);
  }
  return body;
}

/** As `get`. Returns nothing if the resource does not exist or this API has no such path. */
export async function getIfThere(path, signal) {
  try {
    return await get(path, signal);
  } catch (error) {
    if (error instanceof Problem && [403, 404, 405].includes(error.status)) return null;
    throw error;
  }
}

const forGood = new Map();

/** As `getIfThere`, for data that never changes while this page is open. It is requested once. */
export async function getOnce(path, signal) {
  if (!forGood.has(path)) {
    const body = await getIfThere(path, signal);
    if (body === null) return null;
    forGood.set(path, body);
    if (forGood.size > KNOWN_MAX) forGood.delete(forGood.keys().next().value);
  }
  return forGood.get(path);
}

/** The next `getOnce` of this path asks again. */
export function forget(path) {
  forGood.delete(path);
}

/** Posts `body`. With `version`, the command applies to that version, or the API answers 412. */
export async function post(path, body, version) {
  const headers = { "Content-Type": "application/json" };
  if (version !== undefined) headers["If-Match"] = `"${version}"`;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return bodyOf(await call(path, { method: "POST", headers, body: text }));
}

/** A path with a query, without its empty members. A blank is %20: signers and proxies read "+" as a plus. */
export function withQuery(path, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  return query.size ? `${path}?${query.toString().replaceAll("+", "%20")}` : path;
}

async function call(path, { signal, ...init }) {
  const late = AbortSignal.timeout(PATIENCE_MS);
  const headers = token ? { ...init.headers, Authorization: `Bearer ${token}` } : init.headers;
  const either = signal ? AbortSignal.any([signal, late]) : late;
  try {
    return await fetch(`./${path}`, {
      cache: "no-store",
      credentials: "same-origin",
      ...init,
      headers,
      signal: either,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, { detail: late.aborted ? "the API did not answer within 10 s" : "the API cannot be reached" });
  }
}

async function bodyOf(response) {
  let body;
  try {
    body = JSON.parse(await response.text(), exact);
  } catch {
    body = null;
  }
  if (response.ok && body !== null) return body;
  throw new Problem(response.status, body ?? {}, response.headers.get("ETag"));
}

/** Keeps the spelling of a number that would lose digits, such as 1.10, if the browser supports that. */
function exact(_name, value, context) {
  const written = context?.source;
  return typeof value === "number" && written && JSON.rawJSON && String(value) !== written
    ? JSON.rawJSON(written)
    : value;
}
