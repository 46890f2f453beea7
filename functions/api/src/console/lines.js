// The lines of an order (rule 50): steps that go through an array are one row, with their counts. As in the CLI.

/** The steps as groups `{name, steps, isLines}`: one step, or that of all elements. */
export function groups(steps) {
  const found = [];
  for (const step of steps) {
    const name = base(step.Name);
    const last = found.at(-1);
    if (last?.isLines && last.name === name) last.steps.push(step);
    else found.push({ name, steps: [step], isLines: name !== step.Name });
  }
  return found;
}

/** The name of a step in its workflow. */
export function base(name) {
  return name.split("/")[0];
}

/** Whether the order as a whole is being undone, or was. A dropped line is undone alone. */
export function isUndoing(task) {
  return task.Steps.some((step) => step.Direction === "Undo" && !step.Dropped);
}

/** The counts of a group, such as `17 of 18 done, 1 dropped`. */
export function counts(steps) {
  const count = (is) => steps.filter(is).length;
  const isUndo = (step) => step.Direction === "Undo" && !step.Dropped;
  const undoing = count(isUndo);
  const done = count((step) => step.ProcessState === "Processed" && !step.Dropped && isUndo(step) === undoing > 0);
  const parts = [`${done} of ${undoing || steps.length} ${undoing ? "undone" : "done"}`];
  for (const [word, number] of [
    ["failed", count((step) => step.ProcessState === "Error")],
    ["dropped", count((step) => step.Dropped)],
    ["skipped", count((step) => step.ProcessState === "Skipped" && !step.Dropped)],
  ])
    if (number) parts.push(`${number} ${word}`);
  return parts.join(", ");
}

/** What stands for a group where one step would: the sum of its elements, in the state that needs most attention. */
export function summed({ name, steps, isLines }) {
  if (!isLines) return steps[0];
  const kept = steps.filter((step) => !step.Dropped);
  const at = (state) => kept.find((step) => step.ProcessState === state) ?? steps.find((step) => step.ProcessState === state);
  const one = ["Error", "Processing", "Pending", "Processed", "Skipped"].map(at).find(Boolean);
  const sum = (of) => steps.reduce((all, step) => all + of(step), 0);
  const times = (of) => steps.map(of).filter(Boolean).sort();
  return {
    Name: name,
    Agent: one.Agent,
    ProcessState: one.ProcessState,
    Direction: one.Direction,
    Attempt: sum((step) => step.Attempt),
    FailureCount: sum((step) => step.FailureCount),
    StartedAt: times((step) => step.StartedAt)[0],
    FinishedAt: one.ProcessState === "Processed" ? times((step) => step.FinishedAt).at(-1) : undefined,
    LastError: one.LastError,
    Counts: counts(steps),
  };
}

/** The elements of a group: the failed ones first, then the slowest. */
export function sorted(steps) {
  return [...steps].sort((one, other) => rank(one) - rank(other) || took(other) - took(one));
}

function rank(step) {
  if (step.ProcessState === "Error") return 0;
  if (step.ProcessState === "Processing" || step.ProcessState === "Pending") return 1;
  return step.Dropped ? 2 : 3;
}

function took({ StartedAt, FinishedAt }) {
  return StartedAt ? (FinishedAt ? Date.parse(FinishedAt) : Date.now()) - Date.parse(StartedAt) : 0;
}
