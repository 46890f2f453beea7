// A warehouse and a carrier on Node. Each keeps the rules for a service, and its books.
//
//     node service.js warehouse|carrier
//
// Prints its port. A POST with an Idempotency-Key is a call of a step, to the path /undo its undo; GET /books has what was
// done and undone, by key. A line says in `luck` what goes wrong with its calls. The warehouse is out of each SKU that begins
// with "gone", and answers at once. The carrier takes each parcel on, and tells the result later; "heavy" is a no.

"use strict";

const http = require("node:http");

const isCarrier = process.argv[2] === "carrier";
const AGAIN_MS = 200;
const LATER_MS = 2000;

const books = { done: {}, undone: {}, told: {}, faults: [] };
const jobs = new Map();
const agent = new http.Agent({ keepAlive: true, maxSockets: 32 });

function count(of, key) {
  of[key] = (of[key] || 0) + 1;
}

// What the service knows under a key, from its first call on.
function job(key) {
  if (!jobs.has(key)) jobs.set(key, { calls: 0, undos: 0, isOver: false, result: null });
  return jobs.get(key);
}

// The result of a call, once for a key: the status and the body of an answer.
function decide(key, known) {
  if (known.result) return known.result;
  const { sku, shelf } = known.line;
  if (isCarrier && shelf !== `S-${sku}`) books.faults.push(`${key}: from ${shelf}`);
  if (sku.startsWith(isCarrier ? "heavy" : "gone")) {
    known.result = [422, { code: isCarrier ? "too-heavy" : "out-of-stock", message: sku }];
  } else {
    count(books.done, key);
    known.result = [200, isCarrier ? { parcel: `P-${sku}` } : { shelf: `S-${sku}` }];
  }
  return known.result;
}

// Posts a result until there is an answer that says that it arrived.
function tell(key, known, then) {
  if (known.isOver) return then();
  const [status, body] = decide(key, known);
  const told = status === 200 ? { Outcome: "Done", Output: body } : { Outcome: "No", Code: body.code, Message: body.message };
  const isOver = (answered) => {
    count(books.told, answered);
    if (answered === 200 || answered === 202) then();
    else setTimeout(() => tell(key, known, then), AGAIN_MS);
  };
  const headers = { "content-type": "application/json" };
  const request = http.request(known.url, { method: "POST", agent, headers }, (response) => {
    response.resume();
    response.on("end", () => isOver(response.statusCode));
  });
  request.on("error", () => isOver(0));
  request.end(JSON.stringify(told));
}

// Takes a parcel on: most results are told once, some before the answer, some twice. One in forty is told never, so that
// only a repeated call learns of it.
function takeOn(key, known, answer) {
  const { luck } = known.line;
  const taken = () => answer(202, {});
  if (known.calls > 1) return luck % 40 === 0 ? answer(...decide(key, known)) : taken();
  if (luck % 40 === 0) return taken();
  if (luck % 40 === 1) return tell(key, known, taken);
  const again = luck % 40 < 5 ? () => tell(key, known, () => {}) : () => {};
  setTimeout(() => tell(key, known, again), luck % LATER_MS);
  return taken();
}

// Some first calls of the warehouse fail, and some have their effect and no answer.
function serve(key, known, answer, hangUp) {
  const { luck } = known.line;
  if (known.calls === 1 && luck % 9 === 0) return answer(503, {});
  const result = decide(key, known);
  return known.calls === 1 && luck % 9 === 1 ? hangUp() : answer(...result);
}

function undo(key, known, answer, hangUp) {
  known.undos += 1;
  known.isOver = true;
  if (books.done[key] && !books.undone[key]) count(books.undone, key);
  return known.undos === 1 && known.line && known.line.luck % 3 === 0 ? hangUp() : answer(200, {});
}

function call(request, text, answer, hangUp) {
  const key = request.headers["idempotency-key"];
  if (key.endsWith("/undo")) {
    const step = key.slice(0, -"/undo".length);
    return undo(step, job(step), answer, hangUp);
  }
  const known = job(key);
  const url = request.headers["callback-url"];
  known.calls += 1;
  if (known.isOver) return answer(422, { code: "undone" });
  if (known.text !== undefined && (known.text !== text || known.url !== url)) books.faults.push(`${key}: another call`);
  Object.assign(known, { text, url, line: JSON.parse(text) });
  if (!isCarrier) return serve(key, known, answer, hangUp);
  return known.result ? answer(...known.result) : takeOn(key, known, answer);
}

const server = http.createServer((request, response) => {
  const answer = (status, body) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };
  let text = "";
  request.on("data", (part) => (text += part));
  request.on("end", () => {
    if (request.method === "GET") return answer(200, books);
    return call(request, text, answer, () => request.socket.destroy());
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
