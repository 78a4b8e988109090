// The live page: follows the runs of its server, and one of them with its charts, sites, merges and orders.

import { Chart, element, write } from "chart";
import { Orders } from "orders";
import { Sites } from "sites";

const MOST = 3000; // moments, after which the page asks for thinned ones
const AGAIN = 2000; // milliseconds after which a refused connection is tried again

const page = document.getElementById("page");
const shown = { run: "", charts: new Map(), sites: new Set(), stale: false };
let events = null;

// --- the frame --------------------------------------------------------------------------------------------------

const header = element(page, "header");
element(header, "h1", { textContent: "mainstem" });
element(header, "p", { className: "made", textContent: page.dataset.about });
const connection = element(header, "p", { className: "made", role: "status", id: "connection" });
const theme = element(header, "button", { type: "button", id: "theme" });
const main = element(page, "main");

const overview = element(main, "section", { id: "runs" });
element(overview, "h2", { textContent: "Runs" });
const problem = element(overview, "p", { className: "warning", role: "status" });
const list = element(element(overview, "div", { className: "wide" }), "table");
element(list, "caption", { textContent: "Choose a run to follow it" });
const head = element(element(list, "thead"), "tr");
for (const title of ["Run", "State", "At", "Sites"]) element(head, "th", { scope: "col", textContent: title });
const lines = element(list, "tbody");

const run = element(main, "section", { id: "run", hidden: true });
const title = element(run, "h2");
const alarms = element(element(run, "div", { role: "status" }), "ul", { className: "alarms" });
const facts = element(run, "dl");
const orders = new Orders(element(run, "div", { id: "orders" }));
const places = element(run, "div", { id: "charts" });
const sites = new Sites(element(run, "div", { id: "sites" }), shown.sites, connect);
const merges = element(run, "div", { className: "wide", id: "merges", tabIndex: 0, role: "region" });
merges.setAttribute("aria-label", "Latest merges");

const dark = matchMedia("(prefers-color-scheme: dark)");
function show(name) {
  document.documentElement.dataset.theme = name;
  theme.textContent = name === "dark" ? "Light" : "Dark";
  theme.setAttribute("aria-label", `${theme.textContent} colours`);
  for (const { chart } of shown.charts.values()) chart?.draw();
}
theme.onclick = () => show(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
dark.addEventListener("change", () => show(dark.matches ? "dark" : "light"));
show(dark.matches ? "dark" : "light");

// --- what comes -------------------------------------------------------------------------------------------------

/** Follows the runs, and the one that the address names. */
function connect() {
  events?.close();
  const wanted = new URLSearchParams(location.hash.slice(1)).get("run") ?? "";
  if (wanted !== shown.run) {
    shown.run = wanted;
    shown.sites.clear();
    clear();
  }
  const asked = new URLSearchParams({ run: shown.run });
  for (const site of shown.sites) asked.append("site", site);
  const opened = new EventSource(`/events?${asked}`);
  opened.onopen = () => (connection.textContent = "live");
  opened.onerror = () => {
    connection.textContent = "no connection to this page's server: trying again";
    if (opened.readyState === EventSource.CLOSED && opened === events) setTimeout(connect, AGAIN);
  };
  opened.addEventListener("runs", (event) => drawRuns(JSON.parse(event.data)));
  opened.addEventListener("whole", (event) => whole(JSON.parse(event.data)));
  opened.addEventListener("latest", (event) => latest(JSON.parse(event.data)));
  events = opened;
}

function drawRuns(found) {
  write(problem, found.problem);
  const focused = document.activeElement?.closest?.("#runs a")?.textContent;
  lines.replaceChildren();
  for (const row of found.runs) {
    const line = element(lines, "tr", { className: row.needs_somebody ? "needs-somebody" : "" });
    const link = element(element(line, "td"), "a", { textContent: row.run, href: `#${new URLSearchParams({ run: row.run })}` });
    if (row.run === shown.run) link.setAttribute("aria-current", "true");
    for (const name of ["state", "at", "sites"]) element(line, "td", { textContent: row[name] });
    if (row.run === focused) link.focus();
  }
  if (found.runs.length === 0) element(element(lines, "tr"), "td", { textContent: "no runs yet", colSpan: 4 });
  if (found.runs.length === 1 && shown.run === "") location.hash = new URLSearchParams({ run: found.runs[0].run });
}

/** Everything of the run. */
function whole(found) {
  run.hidden = false;
  const known = new Map(found.charts.map((each) => [each.id, each]));
  for (const id of shown.charts.keys()) if (!known.has(id)) shown.charts.get(id).drawn.lines = [];
  for (const drawn of found.charts) {
    const kept = shown.charts.get(drawn.id) ?? { place: element(places, "div"), chart: null };
    watch.observe(kept.place);
    for (const line of drawn.lines) line.x ??= drawn.x.values;
    kept.drawn = drawn;
    shown.charts.set(drawn.id, kept);
  }
  details(found);
  draw();
}

/** The newest values. */
function latest(found) {
  if (shown.charts.size === 0) return;
  details(found);
  for (const [id, { drawn }] of shown.charts) append(drawn, found.point.time, found.point.values[id] ?? {});
  draw();
  const [first] = shown.charts.values();
  if (first.drawn.x.values.length > MOST) connect();
}

/** Appends a moment to the lines of a chart. A line that is new begins here. */
function append(drawn, time, values) {
  const times = drawn.x.values;
  if (times.length && time <= times[times.length - 1]) return;
  for (const name of Object.keys(values))
    if (!drawn.lines.some((line) => line.name === name)) {
      const made = { name, colour: drawn.lines.length, x: times };
      const keys = ["y", "low", "high"].slice(0, values[name].length);
      for (const key of keys) made[key] = times.map(() => null);
      drawn.lines = [...drawn.lines, made];
    }
  times.push(time);
  for (const line of drawn.lines) {
    const found = values[line.name] ?? [];
    ["y", "low", "high"].forEach((key, n) => line[key]?.push(found[n] ?? null));
  }
}

function draw() {
  shown.stale = document.hidden;
  if (shown.stale) return; // nobody sees it
  for (const kept of shown.charts.values()) {
    kept.place.hidden = kept.drawn.lines.length === 0;
    if (kept.place.hidden) continue;
    if (kept.chart === null) kept.chart = new Chart(kept.place, { ...kept.drawn });
    else if (seen.has(kept.place)) kept.chart.set(kept.drawn.lines);
  }
}

/** The places of charts that are on the screen: the others are drawn when they come there. */
const seen = new Set();
const watch = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting } of changes) {
    if (!isIntersecting) seen.delete(target);
    else seen.add(target);
    const kept = [...shown.charts.values()].find((each) => each.place === target);
    if (isIntersecting && kept?.chart) kept.chart.set(kept.drawn.lines);
  }
});
document.addEventListener("visibilitychange", () => shown.stale && draw());

function details(found) {
  write(title, found.run);
  document.title = `${found.run}: ${found.facts[0][1]}`;
  texts(alarms, "li", found.alarms);
  texts(facts, null, found.facts.flat());
  orders.show(found.run, found.orders);
  sites.show(found.sites);
  drawMerges(found.merges ?? []);
}

function drawMerges(found) {
  const newest = found.length ? String(found[found.length - 1].version) : "";
  if (merges.dataset.newest === newest) return;
  merges.dataset.newest = newest;
  merges.replaceChildren();
  if (found.length === 0) return;
  const table = element(merges, "table");
  element(table, "caption", { textContent: "Latest merges" });
  const titles = element(element(table, "thead"), "tr");
  for (const name of ["Merge", "Step", "Time", "Uploads", "Waited, s", "Guarded"])
    element(titles, "th", { scope: "col", textContent: name });
  const body = element(table, "tbody");
  for (const each of [...found].reverse()) {
    const row = element(body, "tr");
    const waited = each.waited.toFixed(3) + (each.deadline ? ", deadline" : "");
    const time = new Date(1000 * each.time).toLocaleTimeString();
    for (const value of [each.version, each.step, time, each.uploads, waited, each.stopped.join(", ")])
      element(row, "td", { textContent: value });
  }
}

function clear() {
  run.hidden = true;
  shown.charts.clear();
  places.replaceChildren();
  merges.replaceChildren();
  delete merges.dataset.newest;
}

/** Sets the texts of an element's children; a list of definitions has terms and details by turns. */
function texts(place, kind, values) {
  while (place.children.length > values.length) place.lastChild.remove();
  values.forEach((value, n) => {
    const child = place.children[n] ?? element(place, kind ?? (n % 2 ? "dd" : "dt"));
    write(child, value);
  });
}

addEventListener("hashchange", connect);
connect();
window.live = shown;
