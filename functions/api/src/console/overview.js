// The first page: orders that wait for an operator, the throughput, and the state of services and supervisors.

import { get, withQuery } from "./api.js";
import { fragment, h } from "./dom.js";
import { orderLink } from "./ids.js";
import { jobState, selector } from "./jobs.js";
import { count, heading, panel, plural, table } from "./parts.js";
import { bar, throughput } from "./pictures.js";
import { needsOperator, services } from "./services.js";
import { length, ms, when } from "./time.js";
import { STATES } from "./words.js";

export const overview = {
  name: "overview",
  title: () => "Overview",
  async load(_route, signal) {
    const [all, jobs] = await Promise.all([get("overview", signal), get(withQuery("bulk", { limit: 10 }), signal)]);
    return { all, jobs: jobs.Jobs };
  },
  render({ all, jobs }, { changed }) {
    const underWay = jobs.filter((one) => ["Planned", "Canary", "Running"].includes(one.State));
    return fragment(
      heading("Overview"),
      verdict(all),
      panel("counts", "Orders by state", counts(all.Counts)),
      panel(
        "failures",
        "Orders in Error",
        failures(all.Failures),
        h("p", {}, h("a", { href: "#/alerts" }, "All alerts, also those that ended")),
      ),
      h(
        "div",
        { class: "pair" },
        panel("throughput", `Last ${all.Minutes.length} minutes`, recent(all)),
        panel("services", "Services", services(all.Services, changed)),
      ),
      h(
        "div",
        { class: "pair" },
        panel("supervisors", "Supervisors", supervisors(all.Leases)),
        h(
          "div",
          { class: "stack" },
          panel("jobs", "Jobs under way", jobsUnderWay(underWay)),
          panel("letters", "Dead letters", letters(all.DeadLetters)),
        ),
      ),
    );
  },
};

/** The number of orders that wait for an operator. */
function forOperator({ Counts, Failures }) {
  const inError = Counts.find(({ State }) => State === "Error");
  return inError?.Count ?? Failures.reduce((sum, one) => sum + one.Count, 0);
}

/** The first answer for an operator on call. */
function verdict(all) {
  const { Paused, Unready, Counts, Services, Leases } = all;
  const inError = Counts.find(({ State }) => State === "Error");
  const out = Services.filter(({ State }) => State !== "Closed");
  const bad = out.filter((service) => !needsOperator(service)).map(({ Service }) => Service);
  const yours = out.filter(needsOperator);
  const waiting = forOperator(all);
  const lines = [];
  const approvals = all.Approvals ?? 0;
  if (Paused) lines.push("The server is paused: no order goes on until it is started without --paused.");
  if (Unready) lines.push(`The server cannot do its work: ${Unready}. No order goes on until it can.`);
  if (waiting > 0)
    lines.push(
      `${plural(waiting, "order", inError?.AtLeast)} ${waiting === 1 && !inError?.AtLeast ? "waits" : "wait"} ` +
        "for an operator.",
    );
  if (approvals > 0)
    lines.push(
      `${plural(approvals, "approval")} ${approvals === 1 ? "is" : "are"} asked for.`,
    );
  for (const { Service, Reason } of yours)
    lines.push(`${Service} ${Reason === "rejections" ? "rejects most steps" : "is misconfigured"}; orders wait for you.`);
  if (bad.length)
    lines.push(
      `${bad.join(" and ")} ${bad.length === 1 ? "is" : "are"} failing; ` +
        `orders wait for ${bad.length === 1 ? "it" : "them"} and go on by themselves.`,
    );
  const unsupervised = !Paused && silent(Leases);
  if (unsupervised) lines.push("No supervisor was heard of for more than two minutes: what is overdue stands still.");
  const isBad = Paused || Unready || waiting > 0 || yours.length || unsupervised;
  const tone = isBad ? "bad" : bad.length || approvals ? "wait" : "good";
  return h(
    "p",
    { class: "verdict", "data-tone": tone, id: "verdict" },
    lines.length ? lines.join(" ") : "No order is in Error, and no service fails.",
    approvals ? [" ", h("a", { href: "#/orders?approval=true" }, "Decide on them")] : null,
  );
}

function silent(leases) {
  const last = Math.max(0, ...leases.map((lease) => (lease.RenewedAt ? ms(lease.RenewedAt) : 0)));
  return last > 0 && Date.now() - last > 120_000;
}

function counts(all) {
  const most = Math.max(1, ...all.map(({ Count }) => Count));
  return h(
    "ul",
    { class: "tiles" },
    STATES.map(([name, sign, words]) => {
      const { Count, AtLeast, Since, OldestAt } = all.find(({ State }) => State === name) ?? { Count: 0 };
      return h(
        "li",
        { "data-key": name, "data-state": name, "data-any": Count > 0 ? "yes" : null },
        h(
          "a",
          { href: `#/orders?state=${name}` },
          h("span", { class: "tile-name" }, h("span", { class: "sign", "aria-hidden": "true" }, sign), name),
          h("span", { class: "number" }, count(Count, AtLeast)),
          bar(Count / most, name),
          h("span", { class: "quiet" }, Since ? `${words}, last 30 min` : words),
          OldestAt ? h("span", { class: "quiet" }, "oldest ", when(OldestAt, "brief")) : null,
        ),
      );
    }),
  );
}

function recent({ Minutes, MinutesComplete, CountedSince, Took }) {
  const during = `in the last ${Minutes.length} minutes`;
  return [
    throughput(Minutes, { complete: MinutesComplete, counted: Boolean(CountedSince), during }),
    Took
      ? h(
          "p",
          {},
          `From acceptance to Processed: p50 ${length(Took.P50Ms)}, p95 ${length(Took.P95Ms)}, p99 ${length(Took.P99Ms)}.`,
        )
      : null,
    CountedSince ? h("p", {}, h("a", { href: "#/numbers" }, "Days, weeks and durations")) : null,
  ];
}

function failures(all) {
  return table({
    caption: "Orders in Error, grouped by cause",
    hideCaption: true,
    rows: all,
    key: (one) => `${one.Code} ${one.Step ?? ""}`,
    empty: "None.",
    columns: [
      {
        name: "Cause",
        isName: true,
        kind: "text",
        cell: (one) => [
          h("strong", {}, one.Step ? `${one.Code} at ${one.Step}` : one.Code),
          h("span", { class: "quiet block" }, [one.Text, one.ToDo].filter(Boolean).join(" ")),
        ],
      },
      {
        name: "Orders",
        kind: "num",
        cell: (one) =>
          h(
            "a",
            {
              href: withQuery("#/orders", { state: "Error", reason: one.Code, step: one.Step }),
              "aria-label": `${plural(one.Count, "order", one.AtLeast)}: show them`,
            },
            count(one.Count, one.AtLeast),
          ),
      },
      {
        name: "Since",
        kind: "still",
        cell: (one) => [
          when(one.OldestAt, "brief"),
          one.Count > 1 ? h("span", { class: "quiet block" }, "last ", when(one.NewestAt, "brief")) : null,
        ],
      },
      {
        name: "Last error",
        kind: "text",
        cell: (one) => [
          one.LastError ? `${one.LastError.Message} (${one.LastError.Code})` : "–",
          one.OrderIDs?.length ? h("span", { class: "block" }, "such as ", orderLink(one.OrderIDs[0])) : null,
        ],
      },
      {
        name: "",
        head: h("span", { class: "unseen" }, "Action"),
        cell: (one) =>
          h(
            "a",
            { class: "button", href: withQuery("#/jobs/new", { reason: one.Code, step: one.Step }) },
            "Resubmit group…",
            h("span", { class: "unseen" }, ` ${one.Code}${one.Step ? ` at ${one.Step}` : ""}`),
          ),
      },
    ],
  });
}

/** One line for each supervisor. Its leases, one for each shard where something was due, and its last run can be unfolded. */
function supervisors(leases) {
  const owners = new Map();
  for (const lease of leases) owners.set(lease.Owner, [...(owners.get(lease.Owner) ?? []), lease]);
  const rows = [...owners].map(([owner, held]) => ({
    owner,
    held,
    last: held
      .map(({ RenewedAt }) => RenewedAt)
      .filter(Boolean)
      .sort()
      .at(-1),
  }));
  rows.sort((one, other) => String(other.last).localeCompare(String(one.last)));
  return [
    table({
      caption: "Supervisors and when each was last heard of",
      hideCaption: true,
      rows,
      key: (row) => row.owner,
      empty: "None was ever heard of.",
      columns: [
        { name: "Supervisor", isName: true, kind: "text", cell: (row) => row.owner },
        { name: "Last run", cell: (row) => (row.last ? when(row.last, "brief") : "–") },
        { name: "Leases", kind: "num", cell: (row) => row.held.length },
        { name: "Held now", kind: "num", cell: (row) => row.held.filter(({ Held }) => Held).length },
      ],
    }),
    leases.length
      ? h(
          "details",
          { class: "numbers" },
          h("summary", {}, `All ${leases.length} leases`),
          table({
            caption: "Leases",
            hideCaption: true,
            rows: leases,
            key: (lease) => lease.Name,
            empty: "None.",
            columns: [
              { name: "Lease", isName: true, kind: "text", cell: (lease) => lease.Name },
              { name: "Owner", kind: "text", cell: (lease) => lease.Owner },
              { name: "Epoch", kind: "num", cell: (lease) => lease.Epoch },
              { name: "Renewed", cell: (lease) => (lease.RenewedAt ? when(lease.RenewedAt, "brief") : "–") },
              {
                name: "Held",
                cell: (lease) =>
                  lease.Held && lease.ExpiresAt ? ["until ", when(lease.ExpiresAt, "clock")] : "given back",
              },
              { name: "Health", kind: "text", cell: (lease) => lease.Health || "–" },
            ],
          }),
        )
      : null,
  ];
}

function jobsUnderWay(jobs) {
  if (!jobs.length) return h("p", { class: "empty" }, "None.");
  return h(
    "ul",
    { class: "plain" },
    jobs.map((one) =>
      h(
        "li",
        { "data-key": one.JobID },
        jobState(one),
        " ",
        h("a", { href: `#/job/${encodeURIComponent(one.JobID)}` }, one.Reason),
        h("span", { class: "quiet block" }, selector(one.Selector)),
      ),
    ),
  );
}

function letters({ Count, AtLeast, NewestAt }) {
  if (!Count) return h("p", { class: "empty" }, "None.");
  return h(
    "p",
    {},
    h("a", { href: "#/dead-letters" }, plural(Count, "dead letter", AtLeast)),
    NewestAt ? [", the last ", when(NewestAt, "brief")] : null,
  );
}
