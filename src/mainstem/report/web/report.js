// The report: builds the page from the content that is embedded in it.

import { Chart, element, short } from "chart";
import { table } from "table";

const content = JSON.parse(document.getElementById("content").textContent);
const page = document.getElementById("page");
const charts = [];

const arrays = { f8: Float64Array, f4: Float32Array };

/** The numbers of a packed array. */
function unpacked(packed) {
  const [[kind, text]] = Object.entries(packed);
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new arrays[kind](bytes.buffer);
}

/** A section with a heading; the navigation has a link to it. */
function section(id, title) {
  const made = element(main, "section", { id });
  made.setAttribute("aria-labelledby", `${id}-title`);
  element(made, "h2", { id: `${id}-title`, textContent: title });
  element(element(links, "li"), "a", { href: `#${id}`, textContent: title });
  return made;
}

function draw(parent, drawn) {
  for (const line of drawn.lines)
    for (const name of ["x", "y", "low", "high"]) if (line[name]) line[name] = unpacked(line[name]);
  charts.push(new Chart(parent, drawn));
}

function facts(parent, pairs) {
  const list = element(parent, "dl");
  for (const [name, value] of pairs) {
    element(list, "dt", { textContent: name });
    element(list, "dd", { textContent: value });
  }
}

function code(parent, title, text) {
  const details = element(parent, "details");
  element(details, "summary", { textContent: title });
  const block = element(details, "pre", { textContent: text, tabIndex: 0 });
  block.setAttribute("role", "region");
  block.setAttribute("aria-label", title);
}

/** Numbers of two parameters against each other; the better, the darker. */
function heatMap(parent, grid) {
  const box = element(parent, "div", { className: "wide", tabIndex: 0, role: "region" });
  box.setAttribute("aria-label", grid.caption);
  const made = element(box, "table", { className: "grid" });
  element(made, "caption", { textContent: grid.caption });
  const head = element(element(made, "thead"), "tr");
  element(head, "th", { scope: "col", textContent: `${grid.rows.name} \\ ${grid.columns.name}` });
  for (const value of grid.columns.values) element(head, "th", { scope: "col", textContent: value });
  const numbers = grid.cells.flat().filter((value) => value !== null);
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const body = element(made, "tbody");
  grid.cells.forEach((cells, n) => {
    const row = element(body, "tr");
    element(row, "th", { scope: "row", textContent: grid.rows.values[n] });
    cells.forEach((value, m) => {
      const cell = element(row, "td", { textContent: value === null ? "diverged" : short(value) });
      const share = value === null ? 0 : (value - least) / (most - least || 1);
      cell.classList.add(`shade-${Math.round(8 * (grid.higher ? share : 1 - share))}`);
      if (grid.best && n === grid.best[0] && m === grid.best[1]) cell.classList.add("best");
    });
  });
}

function runs(parent) {
  for (const run of content.runs) {
    const made = element(parent, "article", { className: "run" });
    element(made, "h3", { textContent: run.name });
    if (run.about) element(made, "p", { textContent: run.about });
    for (const equation of run.equations) {
      const place = element(made, "div", { className: "equation", tabIndex: 0, role: "group" });
      place.setAttribute("aria-label", "Equation");
      if (equation.startsWith("<math")) place.innerHTML = equation; // from the code of the algorithm, not from data
      else element(place, "code", { textContent: equation });
    }
    facts(made, run.facts);
    code(made, run.heading, run.toml);
  }
}

// --- the page ---------------------------------------------------------------------------------------------------

const header = element(page, "header");
element(header, "h1", { textContent: content.title });
element(header, "p", { className: "made", textContent: content.made });
const theme = element(header, "button", { type: "button", id: "theme" });
const links = element(element(header, "nav"), "ul");
links.parentElement.setAttribute("aria-label", "Sections");
const main = element(page, "main");

const dark = matchMedia("(prefers-color-scheme: dark)");
function show(name) {
  document.documentElement.dataset.theme = name;
  theme.textContent = name === "dark" ? "Light" : "Dark";
  theme.setAttribute("aria-label", `${theme.textContent} colours`);
  for (const chart of charts) chart.draw();
}
theme.onclick = () => show(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
dark.addEventListener("change", () => show(dark.matches ? "dark" : "light"));
show(dark.matches ? "dark" : "light");

const overview = section("overview", "Overview");
if (content.command) facts(overview, [["Command", content.command]]);
table(overview, content.table.columns, content.table.rows, content.table.caption);
for (const warning of content.warnings) element(overview, "p", { className: "warning", textContent: warning });
if (content.grid) heatMap(section("grid", "Grid"), content.grid);
for (const each of content.sections) {
  const made = section(each.id, each.title);
  for (const text of each.texts) element(made, "p", { textContent: text });
  for (const drawn of each.charts) draw(made, drawn);
  for (const image of each.images) element(made, "img", { src: image.url, alt: image.alt });
  const beside = element(made, "div", { className: "beside" });
  for (const shown of each.tables) table(beside, shown.columns, shown.rows, shown.caption);
}
if (content.runs.length) runs(section("runs", "What was run"));
if (content.environment) facts(section("environment", "Environment"), content.environment);

addEventListener("beforeprint", () => {
  show("light");
  for (const details of document.querySelectorAll("article details")) details.open = true;
});

window.report = { content, charts };
