// Joins the form, the API and the answers.

import { call, isModel, onSlow, sentenceOf, upload } from "./calls.js";
import {
  choiceFromLink, fillForm, labelOf, linkOf, questionsOf, readForm, targetHint, targetOf, whyNoPlaces,
  withUsualRun,
} from "./choice.js";
import { make, showAnswer, showHint, showProblem, waiting } from "./view.js";

const byId = (id) => document.getElementById(id);
const form = byId("choice"), status = byId("status"), logForm = byId("log-form"), results = byId("results");
const answerPlace = (name) => byId(name).querySelector(".answer");
const LEADS = { plan: 0, explain: -1, converge: 0 }; // what to rent, what would help, when it is there
let choice, shownLink; // the link is that of the address bar
let asking = new AbortController();
let reading = new AbortController(); // of a log
const sending = { model: new AbortController(), log: new AbortController() }; // files that are uploaded to be kept
let wrongPlaces = new Set();
let logFile = null;
let titles = new Map(), usualRuns = new Map(); // of models
let timer = 0;

// `known` is what the forecast could not be told for: it is not repeated in every section.
async function ask(name, question, signal, known = "") {
  const place = answerPlace(name);
  if (!question.body) return showHint(place, question.why);
  waiting(place, true);
  try {
    const answer = await call(`api/${name}`, {
      method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(question.body) });
    if (!signal.aborted) showAnswer(place, answer, LEADS[name]);
    return answer;
  } catch (error) {
    const sentence = sentenceOf(error);
    if (sentence && sentence === known) showHint(place, "No answer, for the same reason as the forecast.");
    else if (sentence) showProblem(place, sentence);
    if (sentence) throw error;
  } finally {
    if (signal === asking.signal) waiting(place, false); // else a newer question waits for this place
  }
}

// The forecast first, since it is what people wait for; the others follow.
async function askAll() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  history.replaceState(null, "", linkOf(choice) + location.hash);
  shownLink = location.search;
  status.textContent = "Working it out …";
  const first = await settled(ask("forecast", questionsOf(choice).forecast, signal));
  if (signal.aborted) return;
  takeForecast(first.answer);
  const others = questionsOf(choice, choice.on.find((place) => !wrongPlaces.has(place)));
  const found = [first], known = first.error && sentenceOf(first.error);
  for (const part of [["explain", "layers"], ["scale", "memory"], ["plan"]]) {
    found.push(...await Promise.all(part.map((name) => settled(ask(name, others[name], signal, known)))));
  }
  if (signal.aborted) return;
  const problem = found.find((one) => one.error);
  const without = wrongPlaces.size ? ` No answer for ${[...wrongPlaces].join(", ")}.` : "";
  status.textContent = problem ? sentenceOf(problem.error) : `Answered for ${choice.name || choice.model}.${without}`;
}

const settled = (promise) => promise.then((answer) => ({ answer }), (error) => ({ error }));

// Places that have no answer, and what the target was taken for.
function takeForecast(answer) {
  wrongPlaces = new Set(answer?.problems.map((one) => one.on));
  showPlaces();
  byId("curve-hint").textContent = targetHint(choice, answer?.data.forecasts[0].to_target?.metric);
}

function changed() {
  choice = readForm(form, choice);
  byId("curve-hint").classList.remove("wrong");
  byId("model-title").textContent = choice.name ? "your upload" : titles.get(choice.model) ?? "";
  byId("curve-hint").textContent = targetHint(choice);
  byId("forget-log").hidden = !choice.log;
  clearTimeout(timer);
  timer = setTimeout(() => (form.checkValidity() ? askAll() : tellInvalid()), 250);
}

// Another model may be trained in another way: images have samples, language models tokens.
function takeUsualRun() {
  const model = form.elements.model.value.trim();
  const usual = usualRuns.get(model), before = usualRuns.get(choice.model);
  if (model === choice.model || (!usual && !before)) return;
  choice = withUsualRun({ ...readForm(form, choice), model, name: "" }, usual, before);
  fillForm(form, choice);
  showPlaces();
}

// Old answers must not be taken for those to what the form says now.
function tellInvalid() {
  asking.abort();
  status.textContent = whatIsInvalid(form);
  showProblem(answerPlace("forecast"), status.textContent);
  for (const name of Object.keys(questionsOf(choice))) {
    if (name !== "forecast") showHint(answerPlace(name), "Asked once the form is complete.");
  }
}

function whatIsInvalid(fields) {
  const field = [...fields.elements].find((element) => element.willValidate && !element.validity.valid);
  return `${labelOf(field)}: ${field.validity.patternMismatch ? field.title : field.validationMessage}`;
}

function showPlaces() {
  byId("chosen").replaceChildren(...choice.on.map((name) => {
    const button = make("button", { type: "button", "aria-label": `Remove ${name}`, text: "×" });
    button.addEventListener("click", () => {
      choice.on = choice.on.filter((other) => other !== name);
      byId("place-hint").textContent = "";
      showPlaces();
      byId("place").focus();
      changed();
    });
    return make("li", wrongPlaces.has(name) ? { text: name, class: "wrong" } : { text: name }, button);
  }));
}

function addPlace() {
  const names = byId("place").value.split(/[,;]/).map((name) => name.trim()).filter(Boolean);
  if (!names.length) return;
  const places = [...new Set([...choice.on, ...names])];
  const why = whyNoPlaces(places);
  byId("place-hint").textContent = why;
  if (why) {
    status.textContent = why;
    return;
  }
  choice.on = places;
  byId("place").value = "";
  showPlaces();
  changed();
}

// The server keeps the file; the newest one of a kind counts. What is wrong with it is told beside its field, and the
// answers that are there stay, since they are those to what the form says.
async function send(kind, file, hint, query = []) {
  sending[kind].abort();
  sending[kind] = new AbortController();
  hint.classList.remove("wrong");
  hint.textContent = status.textContent = `Reading ${file.name} …`;
  try {
    return await upload(`api/${kind}s`, file, query, sending[kind].signal);
  } catch (error) {
    if (!sentenceOf(error)) return null;
    const before = kind === "log" && choice.log_name;
    hint.classList.add("wrong");
    hint.textContent = status.textContent = `${sentenceOf(error)}${before ? ` ${before} still counts.` : ""}`;
    return null;
  }
}

async function uploadModel(file) {
  const found = await send("model", file, byId("model-file-hint"));
  if (!found) return;
  byId("model-file-hint").textContent = "";
  choice = { ...choice, model: found.id, name: found.name };
  form.elements.model.value = found.name;
  changed();
}

async function uploadCurve(file) {
  const { metric } = readForm(form, choice);
  const found = await send("log", file, byId("curve-hint"), metric ? [["metric", metric]] : []);
  if (!found) return;
  offerMetrics(found.metrics);
  choice = { ...choice, log: found.id, log_name: found.name };
  changed();
}

function forgetLog() {
  choice = { ...choice, log: "", log_name: "" };
  byId("curve-file").value = "";
  byId("curve-file").focus();
  changed();
}

// What the target can be of: what a log has, besides what every log may have.
function offerMetrics(names) {
  const known = [...byId("metrics").options].map((option) => option.value);
  byId("metrics").append(...names.filter((name) => !known.includes(name)).map((name) => make("option", { text: name })));
}

async function readLog() {
  reading.abort();
  reading = new AbortController();
  const { signal } = reading;
  choice = readForm(form, choice);
  const place = answerPlace("converge");
  const wrong = [logForm, form].find((fields) => !fields.checkValidity());
  if (wrong) return showProblem(place, whatIsInvalid(wrong));
  const { value, metric } = targetOf(choice);
  const fields = [...new FormData(logForm), ["target", value === null ? "" : String(value)], ["metric", metric]];
  status.textContent = `Reading ${logFile.name} …`;
  showHint(place, status.textContent);
  try {
    const answer = await upload("api/converge", logFile, fields.filter(([, value]) => typeof value === "string" && value), signal);
    if (signal.aborted) return;
    showAnswer(place, answer, LEADS.converge);
    offerMetrics(answer.metrics);
    status.textContent = `Read ${logFile.name}.`;
  } catch (error) {
    if (!sentenceOf(error)) return;
    showProblem(place, sentenceOf(error));
    status.textContent = sentenceOf(error);
  }
}

function listen() {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    addPlace(); // who types a place and asks at once means that one, too
    choice = readForm(form, choice);
    clearTimeout(timer);
    askAll();
    if (results.getBoundingClientRect().top > innerHeight / 2) results.scrollIntoView(); // on a phone they are far below
  });
  form.addEventListener("change", (event) => {
    if (event.target.name === "model") takeUsualRun();
    if (event.target.name) changed();
    if (logFile && ["target", "metric"].includes(event.target.name)) readLog();
  });
  byId("model-file").addEventListener("change", (event) => event.target.files[0] && uploadModel(event.target.files[0]));
  byId("curve-file").addEventListener("change", (event) => event.target.files[0] && uploadCurve(event.target.files[0]));
  byId("forget-log").addEventListener("click", forgetLog);
  for (const input of document.querySelectorAll("input[type=file]")) {
    input.addEventListener("click", () => { input.value = ""; }); // else a file that was mended cannot be chosen again
  }
  byId("add-place").addEventListener("click", addPlace);
  byId("place").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    addPlace();
  });
  byId("share").addEventListener("click", async () => {
    choice = readForm(form, choice); // the address bar still waits for the last key
    const link = new URL(linkOf(choice), location.href).href;
    try {
      await navigator.clipboard.writeText(link);
      status.textContent = "The link is copied: it restores this choice.";
    } catch {
      status.textContent = `The link to this choice: ${link}`;
    }
  });
  const drop = byId("drop");
  const take = (file) => { logFile = file ?? logFile; if (logFile) readLog(); };
  byId("log-file").addEventListener("change", (event) => take(event.target.files[0]));
  logForm.addEventListener("submit", (event) => event.preventDefault());
  logForm.addEventListener("change", (event) => { if (event.target.name) take(null); });
  // Anywhere on the page: a browser would open a file that misses the field, and the page be gone.
  for (const kind of ["dragover", "dragleave", "drop"]) window.addEventListener(kind, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    const [file] = event.dataTransfer.files;
    if (kind === "drop" && file) dropped(file, event.target.closest?.("fieldset"), take);
  });
  window.addEventListener("popstate", takeOtherLink);
}

// A field takes what is dropped on it; elsewhere the file itself says what it is.
async function dropped(file, fieldset, take) {
  const field = fieldset?.querySelector("input[type=file]")?.id;
  if (field === "curve-file") return uploadCurve(file);
  if (field === "model-file" || await isModel(file)) return uploadModel(file);
  take(file);
  byId("converge").scrollIntoView();
}

function showLinkProblems(problems) {
  byId("link-problem").hidden = !problems.length;
  byId("link-problem").textContent = `Not all of this link is understood, and left out are: ${problems.join(", ")}.`;
}

// The choice of the address bar; what the form cannot hold of it is returned.
function takeLink() {
  shownLink = location.search;
  const linked = choiceFromLink(shownLink);
  choice = linked.choice;
  const problems = [...linked.problems, ...fillForm(form, choice)];
  showPlaces();
  return problems;
}

// Back and forward; where only the section is another one, what is being typed stays.
function takeOtherLink() {
  if (location.search === shownLink) return;
  showLinkProblems(takeLink());
  changed();
}

async function start() {
  const { provider } = choiceFromLink(location.search).choice;
  if (provider) form.elements.provider.append(make("option", { text: provider })); // until those that there are have come
  const problems = takeLink();
  listen();
  onSlow((sentence) => { status.textContent = sentence; });
  try {
    const [models, places] = await Promise.all([call("api/models"), call("api/devices")]);
    usualRuns = new Map(models.models.map((model) => [model.name, model.usual]));
    titles = new Map(models.models.map((model) => [model.name, model.title]));
    byId("models").append(...models.models.map((model) => make("option", { value: model.name, text: model.title })));
    byId("places").append(
      ...places.devices.map((device) => make("option", { value: device.name })),
      ...places.machines.map((machine) => make("option", { value: machine.name, text: `${machine.devices}, ${machine.provider}` })));
    showProviders(places.providers, problems);
  } catch (error) {
    status.textContent = sentenceOf(error);
  }
  showLinkProblems(problems);
  changed();
}

function showProviders(names, problems) {
  const select = form.elements.provider, chosen = select.value;
  select.replaceChildren(select.options[0], ...names.map((name) => make("option", { text: name })));
  select.value = names.includes(chosen) ? chosen : "";
  if (select.value !== chosen) problems.push(`${labelOf(select)} '${chosen}'`);
}

start();
