// Draws an answer: cards, charts, remarks, tables. Text goes in as text, never as HTML.

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const touch = window.matchMedia("(pointer: coarse)");
const drawn = new Map();
const FEW_ROWS = 3, MANY_COLUMNS = 6, SHORT = 18;
const MOST_BESIDE = 4, MOST_BARS = 16; // series and names along the axis: a chart with more gets the whole width
const LEGEND_PX = 60; // names above a chart that need more room make it higher, and not the drawing smaller

export function make(tag, { text, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter(Boolean));
  return element;
}

// `lead` is the place of the table that is the answer itself; the others are folded.
export function showAnswer(target, answer, lead) {
  clear(target);
  const first = lead === undefined ? null : answer.tables.at(lead);
  const tables = answer.tables.filter((one) => one !== first);
  const warnings = answer.notes.filter((note) => note.startsWith("Warning: "));
  const others = answer.notes.filter((note) => !note.startsWith("Warning: "));
  const charts = answer.charts.map((chart) => ({ ...chart, place: chartPlace(chart) }));
  target.append(...[
    make("h3", { text: answer.title }),
    answer.subtitle && make("p", { class: "subtitle", text: answer.subtitle }),
    answer.verdict && make("p", { class: "verdict", text: answer.verdict }),
    list((answer.problems ?? []).map(({ on, error }) => (error.includes(on) ? error : `${on}: ${error}`)), "problem"),
    answer.cards?.length && make("div", { class: "cards" }, ...answer.cards.map(card)),
    first && table(first),
    list(warnings, "notes warning"),
    charts.length && make("div", { class: "charts" }, ...charts.map((chart) => chart.place)),
    folded(`Tables (${tables.length})`, tables.map(table)),
    folded(`Notes and assumptions (${others.length})`, others.length ? [list(others, "notes")] : []),
  ].filter(Boolean));
  for (const chart of charts) draw(chart.place.querySelector(".chart"), chart.figure);
}

export function showProblem(target, sentence) {
  clear(target);
  target.append(make("p", { class: "problem", text: sentence }));
}

export function showHint(target, sentence) {
  clear(target);
  target.append(make("p", { class: "hint", text: sentence }));
}

function clear(target) {
  for (const place of target.querySelectorAll(".chart")) {
    drawn.delete(place);
    window.Plotly.purge(place);
  }
  target.replaceChildren();
  waiting(target, false);
}

// What is shown is still the answer to an older question.
export function waiting(target, isWaiting) {
  target.classList.toggle("waiting", isWaiting);
  if (isWaiting) target.setAttribute("aria-busy", "true");
  else target.removeAttribute("aria-busy");
}

function card(content) {
  const rows = content.rows.flatMap((row) => [
    make("dt", { text: row.label }),
    make("dd", { text: row.value, class: row.label.replaceAll(" ", "-") }, row.detail && make("small", { text: row.detail })),
  ]);
  return make("article", { class: content.fits ? "card" : "card bad" }, make("h3", { text: content.title }), make("dl", {}, ...rows));
}

function chartPlace(chart) {
  const { data } = chart.figure;
  const isBroad = data.length > MOST_BESIDE || (typeof data[0].x[0] === "string" && data[0].x.length > MOST_BARS);
  return make("figure", { class: isBroad ? "broad" : "half" },
    make("figcaption", { text: chart.title }), make("div", { class: "chart", role: "group", "aria-label": chart.title }));
}

// What is drawn, for who does not see it: the buttons beside it stay within reach.
function describe(place, { data, layout }) {
  const names = data.filter((series) => series.name && series.showlegend !== false).map((series) => series.name);
  const [x, y] = [layout.xaxis, layout.yaxis].map((axis) => axis.title.text);
  const [first, ...others] = place.querySelectorAll("svg.main-svg");
  first.setAttribute("role", "img");
  first.setAttribute("aria-label", asText(`${y} by ${x}${names.length > 1 ? `: ${names.join(", ")}` : ""}`));
  for (const other of others) other.setAttribute("aria-hidden", "true");
}

// Words of a figure are escaped, since plotly reads a little HTML.
const asText = (words) => new DOMParser().parseFromString(words, "text/html").documentElement.textContent;

function list(notes, name) {
  return notes.length ? make("ul", { class: name }, ...notes.map((text) => make("li", { text }))) : null;
}

function folded(title, content) {
  return content.length ? make("details", {}, make("summary", { text: title }), ...content) : null;
}

function table(content) {
  const isOnSide = content.rows.length <= FEW_ROWS && content.headers.length > MANY_COLUMNS;
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": content.title || "Table" },
    make("table", isOnSide ? { class: "side" } : {}, make("caption", { text: content.title }), ...(isOnSide ? onSide(content) : upright(content))),
    list(content.notes, "notes"));
}

function upright({ headers, is_numeric, rows }) {
  const kinds = headers.map((_, place) => {
    if (is_numeric[place]) return "number";
    return rows.every((row) => row[place].length <= SHORT) ? "short" : "text";
  });
  const head = headers.map((text, place) => make("th", { text, class: kinds[place], scope: "col" }));
  const body = rows.map((row) => make("tr", {}, ...row.map((text, place) => make("td", { text: setIn(text), class: kinds[place] }))));
  return [make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)];
}

// A part of the row above is set in by spaces, which a browser drops unless they are hard.
function setIn(text) {
  return text.replace(/^ +/, (spaces) => "\u00a0".repeat(spaces.length));
}

// A few long rows stand side by side, so that nothing is cut off.
function onSide({ headers, rows }) {
  const lines = headers.map((text, place) => make("tr", {}, make("th", { text, scope: "row" }),
    ...rows.map((row) => (place ? make("td", { text: row[place] }) : make("th", { text: row[place], scope: "col" })))));
  return [make("thead", {}, lines[0]), make("tbody", {}, ...lines.slice(1))];
}

// Colours of axes and text follow the page. Buttons are listed one by one: plotly's own choice uploads charts.
function themed(layout) {
  const css = getComputedStyle(document.documentElement);
  const [ink, line, paper, quiet] = ["--ink", "--line", "--paper", "--quiet"].map((name) => css.getPropertyValue(name).trim());
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line };
  const narrow = window.innerWidth < 640;
  return { ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { ...layout.font, color: ink, size: narrow ? 11 : 12 }, hoverlabel: { bgcolor: paper, font: { color: ink } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: quiet, activecolor: ink }, dragmode: touch.matches ? false : "zoom",
    margin: { l: narrow ? 46 : 64, r: 10, t: 24, b: 50 },
    xaxis: { ...layout.xaxis, ...axis }, yaxis: { ...layout.yaxis, ...axis } };
}

function draw(place, figure) {
  drawn.set(place, figure);
  window.Plotly.react(place, figure.data, themed(figure.layout), { responsive: true, displaylogo: false,
    displayModeBar: touch.matches ? false : "hover", modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] });
  describe(place, figure);
  const more = (place.querySelector(".legend .bg")?.getBoundingClientRect().height ?? 0) - LEGEND_PX;
  if (more > 0 && !place.style.height) {
    place.style.height = `${place.clientHeight + more}px`;
    window.Plotly.Plots.resize(place);
  }
}

dark.addEventListener("change", () => drawn.forEach((figure, place) => draw(place, figure)));
