// Joins the form, the API and the answers.

import { choiceFromLink, fillForm, linkOf, MOST_PLACES, questionsOf, readForm, targetHint } from "./choice.js";
import { make, showAnswer, showHint, showProblem, waiting } from "./view.js";

const byId = (id) => document.getElementById(id);
const form = byId("choice"), status = byId("status"), logForm = byId("log-form");
const answerPlace = (name) => byId(name).querySelector(".answer");
const LEADS = { plan: 0, explain: -1, converge: 0 }; // what to rent, what would help, when it is there
let choice = choiceFromLink(location.search);
let asking = new AbortController();
let reading = new AbortController(); // of a log
let logFile = null;
let titles = new Map();
let timer = 0;

async function call(path, options) {
  const reply = await fetch(path, options);
  const isJson = reply.headers.get("content-type")?.startsWith("application/json");
  const content = isJson ? await reply.json() : { error: `The server answered with status ${reply.status}.` };
  if (!reply.ok) throw new Error(content.error);
  return content;
}

// A sentence for what went wrong, or nothing where the question was taken back.
function sentenceOf(error) {
  if (error.name === "AbortError") return "";
  return error instanceof TypeError ? "The server cannot be reached: is it still running?" : error.message;
}

// A running job goes on writing, and the browser does not send a file that has changed since it was chosen.
async function contentOf(file) {
  try {
    return await file.arrayBuffer();
  } catch {
    throw new Error(`${file.name} has changed since it was chosen: choose it or drop it again.`);
  }
}

async function upload(path, file, query, signal) {
  return call(`${path}?${new URLSearchParams([["name", file.name], ...query])}`, {
    method: "POST", signal, headers: { "Content-Type": "application/octet-stream" }, body: await contentOf(file) });
}

async function ask(name, question, signal) {
  const place = answerPlace(name);
  if (!question.body) return showHint(place, question.why);
  waiting(place, true);
  try {
    const answer = await call(`api/${name}`, {
      method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(question.body) });
    if (!signal.aborted) showAnswer(place, answer, LEADS[name]);
  } catch (error) {
    const sentence = sentenceOf(error);
    if (sentence) showProblem(place, sentence);
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
  const { forecast, ...others } = questionsOf(choice);
  history.replaceState(null, "", linkOf(choice) + location.hash);
  status.textContent = "Working it out …";
  const results = [await settled(ask("forecast", forecast, signal))];
  if (signal.aborted) return;
  for (const part of [["explain", "layers"], ["scale", "memory"], ["plan"]]) {
    results.push(...await Promise.all(part.map((name) => settled(ask(name, others[name], signal)))));
  }
  if (signal.aborted) return;
  const problem = results.find(Boolean);
  status.textContent = problem ? problem.message : `Answered for ${choice.name || choice.model}.`;
}

const settled = (promise) => promise.then(() => null, (error) => error);

function changed() {
  choice = readForm(form, choice);
  byId("model-title").textContent = choice.name ? "your upload" : titles.get(choice.model) ?? "";
  byId("curve-hint").textContent = targetHint(choice);
  clearTimeout(timer);
  timer = setTimeout(() => (form.checkValidity() ? askAll() : tellInvalid()), 250);
}

// Old answers must not be taken for those to what the form says now.
function tellInvalid() {
  asking.abort();
  const field = [...form.elements].find((element) => element.willValidate && !element.validity.valid);
  status.textContent = `${field.labels[0].firstChild.textContent.trim()}: ${field.validationMessage}`;
  showProblem(answerPlace("forecast"), status.textContent);
  for (const name of Object.keys(questionsOf(choice))) {
    if (name !== "forecast") showHint(answerPlace(name), "Asked once the form is complete.");
  }
}

function showPlaces() {
  byId("chosen").replaceChildren(...choice.on.map((name) => {
    const button = make("button", { type: "button", "aria-label": `Remove ${name}`, text: "×" });
    button.addEventListener("click", () => {
      choice.on = choice.on.filter((other) => other !== name);
      showPlaces();
      byId("place").focus();
      changed();
    });
    return make("li", { text: name }, button);
  }));
}

function addPlace() {
  const name = byId("place").value.trim();
  if (!name) return;
  if (!choice.on.includes(name) && choice.on.length >= MOST_PLACES) {
    status.textContent = `At most ${MOST_PLACES} places are compared: remove one first.`;
    return;
  }
  if (!choice.on.includes(name)) choice.on = [...choice.on, name];
  byId("place").value = "";
  showPlaces();
  changed();
}

async function uploadModel(file) {
  clearTimeout(timer);
  asking.abort();
  status.textContent = `Reading ${file.name} …`;
  try {
    const found = await upload("api/models", file, []);
    choice = { ...choice, model: found.id, name: found.name };
    form.elements.model.value = found.name;
    changed();
  } catch (error) {
    status.textContent = sentenceOf(error);
    showProblem(answerPlace("forecast"), sentenceOf(error));
  }
}

async function uploadCurve(file) {
  byId("curve-hint").textContent = `Reading ${file.name} …`;
  try {
    const found = await upload("api/logs", file, []);
    choice = { ...choice, log: found.id, log_name: found.name };
    changed();
  } catch (error) {
    byId("curve-hint").textContent = sentenceOf(error);
    status.textContent = sentenceOf(error);
  }
}

async function readLog() {
  reading.abort();
  reading = new AbortController();
  const { signal } = reading;
  choice = readForm(form, choice);
  const place = answerPlace("converge");
  const fields = [...new FormData(logForm), ["target", choice.target], ["metric", choice.metric]];
  showHint(place, `Reading ${logFile.name} …`);
  try {
    const answer = await upload("api/converge", logFile, fields.filter(([, value]) => typeof value === "string" && value), signal);
    if (signal.aborted) return;
    showAnswer(place, answer, LEADS.converge);
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
    choice = readForm(form, choice);
    clearTimeout(timer);
    askAll();
  });
  form.addEventListener("change", (event) => {
    if (event.target.name) changed();
    if (logFile && ["target", "metric"].includes(event.target.name)) readLog();
  });
  byId("model-file").addEventListener("change", (event) => event.target.files[0] && uploadModel(event.target.files[0]));
  byId("curve-file").addEventListener("change", (event) => event.target.files[0] && uploadCurve(event.target.files[0]));
  byId("add-place").addEventListener("click", addPlace);
  byId("place").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    addPlace();
  });
  byId("share").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      status.textContent = "The link is copied: it restores this choice.";
    } catch {
      status.textContent = `The link to this choice: ${location.href}`;
    }
  });
  const drop = byId("drop");
  const take = (file) => { logFile = file ?? logFile; if (logFile) readLog(); };
  byId("log-file").addEventListener("change", (event) => take(event.target.files[0]));
  logForm.addEventListener("submit", (event) => event.preventDefault());
  logForm.addEventListener("change", (event) => { if (event.target.name) take(null); });
  for (const kind of ["dragover", "dragleave", "drop"]) drop.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    if (kind === "drop") take(event.dataTransfer.files[0]);
  });
}

async function start() {
  fillForm(form, choice);
  showPlaces();
  listen();
  try {
    const [models, places] = await Promise.all([call("api/models"), call("api/devices")]);
    titles = new Map(models.models.map((model) => [model.name, model.title]));
    byId("models").append(...models.models.map((model) => make("option", { value: model.name, text: model.title })));
    byId("places").append(
      ...places.devices.map((device) => make("option", { value: device.name })),
      ...places.machines.map((machine) => make("option", { value: machine.name, text: `${machine.devices}, ${machine.provider}` })));
    form.elements.provider.append(...places.providers.map((name) => make("option", { text: name })));
    form.elements.provider.value = choice.provider;
  } catch (error) {
    status.textContent = sentenceOf(error);
  }
  changed();
}

start();
