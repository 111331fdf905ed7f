"""The fixed parts of the HTML page: skeleton, style and the few lines that draw the charts."""

from __future__ import annotations

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="traincast">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:;
  form-action 'none'; base-uri 'none'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""

STYLE = """
:root { color-scheme: light dark;
  --ink: #1b1f24; --quiet: #59636e; --paper: #ffffff; --line: #d8dee4; --stripe: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6edf3; --quiet: #9198a1; --paper: #0d1117; --line: #30363d; --stripe: #151b23; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 84rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .5rem; overflow-wrap: anywhere; }
.subtitle { color: var(--quiet); margin: 0 0 1rem; }
.verdict { font-size: 1.1rem; max-width: 60rem; margin: 0 0 1rem; }
section, figure { margin: 1.5rem 0 0; }
.chart { width: 100%; height: 26rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--quiet); border-bottom: 2px solid var(--line); vertical-align: bottom; }
td.text { overflow-wrap: break-word; max-width: 26rem; }
.text, .name { text-align: left; }
.name { white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tbody tr:nth-child(even) { background: var(--stripe); }
.notes { color: var(--quiet); font-size: .9rem; padding-left: 1.2rem; max-width: 48rem; }
details { margin-top: 1rem; color: var(--quiet); font-size: .9rem; }
summary { cursor: pointer; }
footer { margin-top: 2.5rem; padding-top: .75rem; border-top: 1px solid var(--line); color: var(--quiet);
  font-size: .85rem; overflow-wrap: anywhere; }
@media print { .scroll { overflow: visible; } main { max-width: none; padding: 0; } }
"""

# Colours of axes and text follow the page, also when the reader switches between light and dark. Buttons are
# listed one by one because plotly's own choice has one that uploads the chart.
SCRIPT = """
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const narrow = window.matchMedia("(max-width: 600px)");
function themed(layout) {
  const css = getComputedStyle(document.documentElement);
  const ink = css.getPropertyValue("--ink").trim(), line = css.getPropertyValue("--line").trim();
  const paper = css.getPropertyValue("--paper").trim(), quiet = css.getPropertyValue("--quiet").trim();
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line };
  return { ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { ...layout.font, color: ink }, hoverlabel: { bgcolor: paper, font: { color: ink } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: quiet, activecolor: ink },
    xaxis: { ...layout.xaxis, ...axis }, yaxis: { ...layout.yaxis, ...axis } };
}
// A phone has no room for names beside points, nor for marks within the decades of an axis. What is drawn again is a
// copy: of data that it has seen Plotly keeps the points and forgets how far they reach, and its axes are then wrong.
function fitted(figure) {
  const { data, layout } = structuredClone(figure);
  if (!narrow.matches) return { data, layout };
  const { dtick, ...xaxis } = layout.xaxis;
  return { data: data.map(trace => trace.mode === "markers+text" ? { ...trace, mode: "markers" } : trace),
    layout: layout.xaxis.type === "log" ? { ...layout, xaxis } : layout };
}
function draw() {
  figures.map(fitted).forEach((figure, number) => Plotly.react("chart-" + number, figure.data, themed(figure.layout),
    { responsive: true, displaylogo: false, displayModeBar: "hover",
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] }));
}
draw();
[dark, narrow].forEach(one => one.addEventListener("change", draw));
"""
