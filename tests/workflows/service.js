// A small service on Node. It keeps the rules for a service, and its books.
//
//     node service.js
//
// Prints its port. POST /do and /undo are the calls of a step; GET /books has what it did, by key.

"use strict";

const http = require("node:http");

const done = new Map();
const undone = new Set();
const books = { done: {}, undone: {} };

function answer(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function call(request, response, text) {
  const key = request.headers["idempotency-key"];
  if (request.url === "/undo") {
    const step = key.replace(/\/undo$/, "");
    if (done.has(step) && !undone.has(step)) books.undone[step] = (books.undone[step] || 0) + 1;
    undone.add(step);
    return answer(response, 200, {});
  }
  if (undone.has(key)) return answer(response, 422, { code: "undone", detail: "it was undone before" });
  if (!done.has(key)) {
    const order = JSON.parse(text).Order;
    if (order.Decline && key.endsWith(order.Decline)) {
      return answer(response, 422, { code: "declined", detail: "as the order says" });
    }
    books.done[key] = (books.done[key] || 0) + 1;
    done.set(key, { Number: done.size + 1 });
  }
  return answer(response, 200, done.get(key));
}

const server = http.createServer((request, response) => {
  let text = "";
  request.on("data", (part) => (text += part));
  request.on("end", () => (request.method === "GET" ? answer(response, 200, books) : call(request, response, text)));
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
