// What the user has chosen: read from the form and the address bar, written to both, turned into questions.

// Files that the server keeps have an id, and the name that they had.
const UPLOADS = ["name", "log", "log_name"];
const NOTHING_UPLOADED = Object.fromEntries(UPLOADS.map((name) => [name, ""]));
const START = {
  model: "resnet50", on: ["g4dn.xlarge", "g5.xlarge", "p5.4xlarge"], batch_size: "128", n_samples: "1281167", n_epochs: "90",
  precision: "amp-fp16", optimizer: "", compiled: false, target: "", metric: "", deadline_h: "24", budget_usd: "", provider: "",
  spot: false, ...NOTHING_UPLOADED,
};
const TEXTS = ["batch_size", "n_samples", "n_epochs", "precision", "optimizer", "target", "metric", "deadline_h", "budget_usd",
  "provider"];
const CHECKS = ["compiled", "spot"];
export const MOST_PLACES = 8;

// A link holds the whole choice; what it leaves out is empty, unless it is no link to a choice at all.
export function choiceFromLink(search) {
  const link = new URLSearchParams(search);
  if (!link.has("model")) return { ...START, on: [...START.on] };
  const choice = { model: link.get("model"), on: link.getAll("on").slice(0, MOST_PLACES) };
  for (const name of [...UPLOADS, ...TEXTS]) choice[name] = link.get(name) ?? "";
  for (const name of CHECKS) choice[name] = link.get(name) === "1";
  choice.batch_size ||= START.batch_size;
  choice.n_epochs ||= "1";
  return choice;
}

export function linkOf(choice) {
  const link = new URLSearchParams({ model: choice.model });
  for (const place of choice.on) link.append("on", place);
  for (const name of [...UPLOADS, ...TEXTS]) if (choice[name]) link.set(name, choice[name]);
  for (const name of CHECKS) if (choice[name]) link.set(name, "1");
  return "?" + link;
}

export function fillForm(form, choice) {
  form.elements.model.value = choice.name || choice.model;
  for (const name of TEXTS) form.elements[name].value = choice[name];
  for (const name of CHECKS) form.elements[name].checked = choice[name];
}

// An uploaded model keeps its id as long as its name stays in the field.
export function readForm(form, before) {
  const shown = form.elements.model.value.trim();
  const isSame = before.name && shown === before.name;
  const choice = { ...before, model: isSame ? before.model : shown, name: isSame ? before.name : "" };
  for (const name of TEXTS) choice[name] = form.elements[name].value.trim();
  for (const name of CHECKS) choice[name] = form.elements[name].checked;
  return choice;
}

const number = (text) => (text === "" ? null : Number(text));
const given = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== ""));

// One body a question; null where a question cannot be asked yet, with the reason beside it.
export function questionsOf(choice) {
  const base = given({
    model: choice.model, batch_size: number(choice.batch_size), precision: choice.precision, optimizer: choice.optimizer,
  });
  const step = { ...base, compiled: choice.compiled };
  const length = given({ n_samples: number(choice.n_samples), n_epochs: number(choice.n_epochs) });
  const first = choice.on[0];
  const target = choice.log && choice.target
    ? given({ log: choice.log, value: Number(choice.target), metric: choice.metric }) : null;
  const noPlace = { why: "Add a device or a machine first." };
  return {
    forecast: first ? { body: given({ ...step, ...length, on: choice.on, target }) } : noPlace,
    memory: { body: given({ ...base, on: first ?? null }) },
    explain: first ? { body: { ...step, on: first } } : noPlace,
    layers: { body: given({ ...base, on: first ?? null }) },
    scale: first ? { body: { ...step, ...length, on: first } } : noPlace,
    plan: choice.n_samples
      ? { body: { ...step, ...length, spot: choice.spot, ...given({
        target: choice.metric === "accuracy" ? target : null,
        deadline_s: choice.deadline_h ? 3600 * Number(choice.deadline_h) : null,
        budget_usd: number(choice.budget_usd), provider: choice.provider }) } }
      : { why: "A plan needs the samples of one epoch." },
  };
}

// What becomes of the target, in a sentence.
export function targetHint(choice) {
  if (choice.log && choice.target) return `Told by ${choice.log_name}.`;
  if (choice.log) return `${choice.log_name} is read: which value is good enough?`;
  return choice.target ? "When it is reached is told by the log of an earlier run, or of a running job below." : "";
}
