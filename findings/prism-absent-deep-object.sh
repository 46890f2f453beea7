#!/usr/bin/env bash
# An optional object of style deepObject that a request leaves out is refused by a mock server for its required members.
#
# Subject:  Prism, @stoplight/prism-cli 5.16.0 of npm, as a mock server. Needs Node 20 or later, npm and curl.
# Guess:    a form of two optional parts may leave one out, since nothing in OpenAPI 3.0 makes an absent object a value.
# Behaviour: with `style: deepObject` Prism takes an absent object for an empty one, in a form and in a query. If the
#           schema of the object has `required`, the valid request is answered 422. Without deepObject it is answered 200.
# Output:   deep form: 422, the same with the object: 200, plain form: 200, deep query: 422
#
# So a description with dozens of such objects, as those of card providers have, refuses every form that does not send
# them all. The suite `tests/run apis` therefore leaves out what its shop does not send.
set -euo pipefail

folder=$(mktemp -d)
server=''
stop() {
    if [[ -n $server ]]; then kill "$server" 2>/dev/null || true; fi
    rm -rf "$folder"
}
trap stop EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts --prefix . @stoplight/prism-cli@5.16.0 >/dev/null

cat >api.json <<'JSON'
{
  "openapi": "3.0.3",
  "info": {"title": "A form", "version": "1"},
  "components": {"schemas": {
    "Card": {"type": "object", "required": ["number"], "properties": {"number": {"type": "string"}}},
    "Form": {"type": "object", "required": ["amount"], "properties": {
      "amount": {"type": "integer"}, "card": {"$ref": "#/components/schemas/Card"}}}}},
  "paths": {
    "/deep": {"post": {
      "requestBody": {"required": true, "content": {"application/x-www-form-urlencoded": {
        "schema": {"$ref": "#/components/schemas/Form"},
        "encoding": {"card": {"style": "deepObject", "explode": true}}}}},
      "responses": {"200": {"description": "ok"}}}},
    "/plain": {"post": {
      "requestBody": {"required": true, "content": {"application/x-www-form-urlencoded": {
        "schema": {"$ref": "#/components/schemas/Form"}}}},
      "responses": {"200": {"description": "ok"}}}},
    "/query": {"get": {
      "parameters": [{"name": "card", "in": "query", "required": false, "style": "deepObject", "explode": true,
        "schema": {"$ref": "#/components/schemas/Card"}}],
      "responses": {"200": {"description": "ok"}}}}}
}
JSON

port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })')
node_modules/.bin/prism mock --host 127.0.0.1 --port "$port" api.json >log 2>&1 &
server=$!
for _ in $(seq 300); do
    if grep -q 'Prism is listening' log; then break; fi
    kill -0 "$server" || { cat log; exit 1; }
    sleep 0.2
done

status() {
    curl --silent --globoff --output /dev/null --write-out '%{http_code}' "$@"
}

url="http://127.0.0.1:$port"
found="deep form: $(status -d amount=1 "$url/deep"), the same with the object: $(status -d amount=1 -d 'card[number]=7' "$url/deep")"
found+=", plain form: $(status -d amount=1 "$url/plain"), deep query: $(status "$url/query")"
expected='deep form: 422, the same with the object: 200, plain form: 200, deep query: 422'
echo "$(node --version), prism $(node_modules/.bin/prism --version): $found"
[[ $found == "$expected" ]] || { echo "expected: $expected"; exit 1; }
