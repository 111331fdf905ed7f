// What the user has chosen: read from the form and the address bar, written to both, turned into questions.

// Files that the server keeps have an id, and the name that they had.
const UPLOADS = ["name", "log", "log_name"];
const NOTHING_UPLOADED = Object.fromEntries(UPLOADS.map((name) => [name, ""]));
const START = {
  model: "resnet50", on: ["g4dn.xlarge", "g5.xlarge", "p5.4xlarge"], batch_size: "128", n_samples: "1281167", n_epochs: "90",
  n_tokens: "", seqlen: "", strategy: "", recompute: "", adapter: "", stack: "",
  precision: "amp-fp16", optimizer: "", compiled: false, target: "", metric: "", deadline_h: "24", budget_usd: "", provider: "",
  spot: false, ...NOTHING_UPLOADED,
};
const TEXTS = ["batch_size", "n_samples", "n_epochs", "n_tokens", "seqlen", "strategy", "precision", "optimizer", "recompute",
  "adapter", "stack", "target", "metric", "deadline_h", "budget_usd",
  "provider"];
const CHECKS = ["compiled", "spot"];
const KNOWN = new Set(["model", "on", ...UPLOADS, ...TEXTS, ...CHECKS]);
const PERCENT = /^(.*?)\s*%$/;
const SIZES = { k: 1e3, M: 1e6, B: 1e9, G: 1e9, T: 1e12 };
const OF_A_RUN = ["batch_size", "n_samples", "n_epochs", "n_tokens", "seqlen", "strategy", "precision", "optimizer", "recompute",
  "adapter", "stack", "deadline_h"];
const LONGEST = 80; // letters of a place
export const MOST_PLACES = 8;

// Why a place cannot be chosen, or nothing.
export function whyNoPlaces(names) {
  const long = names.find((name) => name.length > LONGEST);
  if (long) return `'${long.slice(0, 20)}…' is longer than the name of any place.`;
  return names.length > MOST_PLACES ? `At most ${MOST_PLACES} places are compared: remove one first.` : "";
}

// The choice for another model: a language model starts with its usual run, and what comes after one with what the page
// starts with. Places that somebody chose stay; `before` is the usual run of the model that was there.
export function withUsualRun(choice, usual, before) {
  if (!usual && !before) return choice;
  const own = [START.on, before ? [before.on] : []].every((places) => String(places) !== String(choice.on));
  const run = Object.fromEntries(OF_A_RUN.map((name) => [name, usual ? "" : START[name]]));
  if (usual) {
    for (const name of OF_A_RUN) run[name] = String(usual[name] ?? "");
    run.n_epochs = "1";
    run.n_tokens = inWords(usual.n_tokens);
  }
  return { ...choice, ...run, on: own ? choice.on : usual ? [usual.on] : [...START.on] };
}

// 160000000000 reads '160B'.
function inWords(tokens) {
  const unit = ["T", "B", "M", "k"].find((name) => tokens >= SIZES[name]);
  return unit ? `${tokens / SIZES[unit]}${unit}` : String(tokens);
}

// '15T' is 15,000,000,000,000.
function tokensOf(text) {
  const unit = text.match(/[kMBGT]$/)?.[0];
  return text ? Math.round(Number.parseFloat(text) * (unit ? SIZES[unit] : 1)) : null;
}

// A link holds the whole choice; what it leaves out is empty, unless it is no link to a choice at all.
// `problems` are the parts of the link that say nothing to this page.
export function choiceFromLink(search) {
  const link = new URLSearchParams(search), named = [...new Set(link.getAll("on"))];
  const all = named.filter((place) => place && place.length <= LONGEST);
  if (![...link].length) return { choice: { ...START, on: [...START.on] }, problems: [] };
  const choice = { model: link.get("model") || START.model, on: all.slice(0, MOST_PLACES) };
  for (const name of [...UPLOADS, ...TEXTS]) choice[name] = link.get(name) ?? "";
  for (const name of CHECKS) choice[name] = link.get(name) === "1";
  if (!choice.model.startsWith("upload-")) choice.name = "";
  if (!choice.log) choice.log_name = "";
  choice.batch_size ||= START.batch_size;
  choice.n_epochs ||= "1";
  return { choice, problems: [
    ...(link.get("model") ? [] : ["it names no model"]),
    ...[...link.keys()].filter((name) => !KNOWN.has(name)).map((name) => `'${name}'`),
    ...CHECKS.filter((name) => !["1", "0", null].includes(link.get(name))).map((name) => `${name} '${link.get(name)}'`),
    ...named.filter((place) => place.length > LONGEST).map((place) => `'${place.slice(0, 20)}…'`),
    ...all.slice(MOST_PLACES).map((place) => `'${place}' (at most ${MOST_PLACES} places are compared)`),
  ] };
}

export function linkOf(choice) {
  const link = new URLSearchParams({ model: choice.model });
  for (const place of choice.on) link.append("on", place);
  for (const name of [...UPLOADS, ...TEXTS]) if (choice[name]) link.set(name, choice[name]);
  for (const name of CHECKS) if (choice[name]) link.set(name, "1");
  return "?" + link;
}

// What a field cannot hold, such as a word for a number, is told and left at what the page starts with.
export function fillForm(form, choice) {
  const problems = [];
  form.elements.model.value = choice.name || choice.model;
  for (const name of TEXTS) {
    const field = form.elements[name];
    field.value = choice[name];
    if (field.value === choice[name]) continue;
    problems.push(`${labelOf(field)} '${choice[name]}'`);
    field.value = field.required ? START[name] : "";
  }
  for (const name of CHECKS) form.elements[name].checked = choice[name];
  return problems;
}

// The label's own words, without those of the field inside it.
export const labelOf = (field) => [...field.labels[0].childNodes]
  .filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join("").trim();

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

// 92 % is an accuracy, whatever the log has.
export function targetOf(choice) {
  const percent = choice.target.match(PERCENT);
  return { value: number(percent ? percent[1] : choice.target), metric: choice.metric || (percent ? "accuracy" : "") };
}

// One body a question; null where a question cannot be asked yet, with the reason beside it. `first` is the place that
// questions about one place are asked about.
export function questionsOf(choice, first = choice.on[0]) {
  const model = given({
    model: choice.model, batch_size: number(choice.batch_size), precision: choice.precision, optimizer: choice.optimizer,
    seqlen: number(choice.seqlen),
  });
  const base = { ...model, ...given({ recompute: choice.recompute, adapter: choice.adapter, stack: choice.stack }) };
  const step = { ...base, ...given({ strategy: choice.strategy }), compiled: choice.compiled };
  const n_tokens = tokensOf(choice.n_tokens);
  const length = given({ n_samples: number(choice.n_samples), n_epochs: number(choice.n_epochs), n_tokens });
  const whole = planned(length, choice); // a plan is made for samples
  const target = choice.log && choice.target ? given({ log: choice.log, ...targetOf(choice) }) : null;
  const noPlace = { why: "Add a device or a machine first." };
  return {
    forecast: first ? { body: given({ ...step, ...length, on: choice.on, target }) } : noPlace,
    memory: { body: given({ ...base, on: first ?? null }) },
    explain: first ? { body: { ...step, on: first } } : noPlace,
    layers: { body: given({ ...model, on: first ?? null }) },
    scale: first ? { body: { ...step, ...length, on: first } } : noPlace,
    plan: whole.n_samples
      ? { body: { ...step, ...whole, spot: choice.spot, ...given({
        target,
        deadline_s: choice.deadline_h ? 3600 * Number(choice.deadline_h) : null,
        budget_usd: number(choice.budget_usd), provider: choice.provider }) } }
      : { why: "A plan needs the samples of one epoch, or the tokens of the run and the length of a sequence." },
  };
}

// A run in tokens as the sequences that they are.
function planned({ n_tokens, ...length }, choice) {
  const isInTokens = n_tokens && choice.seqlen && !length.n_samples;
  return isInTokens ? { n_samples: Math.ceil(n_tokens / number(choice.seqlen)), n_epochs: 1 } : length;
}

// What becomes of the target, in a sentence. `metric` is what it was taken for.
export function targetHint(choice, metric = "") {
  const log = choice.log_name || "the log";
  if (choice.log && choice.target) return `Told by ${log}${metric && `, as ${metric}`}.`;
  if (choice.log) return `${log} is read: which value is good enough?`;
  return choice.target ? "When it is reached is told by the log of an earlier run, or of a running job below." : "";
}
