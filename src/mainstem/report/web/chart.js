// A chart: curves with bands, a legend that hides them, zoom by mouse and by keyboard, and a table of values.

import uPlot from "uplot";

const DASHES = [[], [8, 4], [2, 3], [8, 3, 2, 3]]; // so that curves differ in more than colour
const HEIGHT = 300;
const ROWS = 12; // of the table of values
const decimal = new Intl.NumberFormat("en", { maximumFractionDigits: 6 }); // to make one takes long

let charts = 0;

/** Draws a chart below `parent`. Its lines have `x`, `y` and for a band `low` and `high`, as arrays of numbers. */
export class Chart {
  constructor(parent, drawn) {
    this.drawn = drawn;
    this.logs = { x: drawn.x.log ?? false, y: drawn.y.log ?? false };
    this.hidden = new Set(); // the names of lines: others may come and go
    this.range = null; // of x, while zoomed
    this.id = `chart-${++charts}`;
    this.figure = element(parent, "figure", { className: "chart" });
    this.title = element(this.figure, "figcaption", { textContent: drawn.title, id: `${this.id}-title` });
    this.tools();
    this.place = element(this.figure, "div", { className: "plot", role: "img" });
    this.place.setAttribute("aria-label", this.summary());
    this.legend();
    if (drawn.note) element(this.figure, "p", { className: "note", textContent: drawn.note });
    this.values();
    this.draw();
    new ResizeObserver(() => this.fit()).observe(this.place);
  }

  /** Draws anew: after a change of the theme or of an axis. */
  draw() {
    this.plot?.destroy();
    this.plot = new uPlot(this.options(), this.data(), this.place);
    if (this.range) this.zoomTo(...this.range);
  }

  /** Draws other lines, or the same with more points: while the page is open. */
  set(lines) {
    const names = (each) => JSON.stringify(each.map((line) => line.name));
    const same = names(lines) === names(this.drawn.lines);
    this.drawn.lines = lines;
    if (same) {
      this.plot.setData(this.data(), this.range === null);
      this.read();
    } else {
      this.list.remove();
      this.legend();
      this.draw();
    }
    this.place.setAttribute("aria-label", this.summary());
  }

  /** Shows x from `low` to `high`. */
  zoomTo(low, high) {
    this.range = [low, high];
    this.plot.setScale("x", { min: low, max: high });
  }

  reset() {
    const [low, high] = this.whole();
    this.plot.setScale("x", { min: low, max: high });
    this.range = null;
  }

  /** Hides a line, or shows it again. */
  toggle(n) {
    const { name } = this.drawn.lines[n];
    const shown = this.hidden.delete(name);
    if (!shown) this.hidden.add(name);
    this.buttons[n].setAttribute("aria-pressed", String(shown));
    for (let column = 3 * n + 1; column <= 3 * n + 3; column++) this.plot.setSeries(column, { show: shown });
  }

  data() {
    const { x: logX, y: logY } = this.logs;
    if (this.drawn.lines.length === 0) return [[]];
    const fine = (log) => (value) => (Number.isFinite(value) && (!log || value > 0) ? value : null);
    const tables = this.drawn.lines.map((line) => {
      const rows = [...line.x.keys()].filter((n) => !logX || line.x[n] > 0);
      const column = (values) => rows.map((n) => (values ? fine(logY)(values[n]) : null));
      return [rows.map((n) => line.x[n]), column(line.y), column(line.low), column(line.high)];
    });
    const alike = this.drawn.lines.every((line) => line.x === this.drawn.lines[0].x);
    if (alike) return [tables[0][0], ...tables.flatMap(([, ...columns]) => columns)];
    return uPlot.join(tables, tables.map(() => [0, 1, 1, 1])); // a missing value is a gap, another line's x is not
  }

  options() {
    const style = getComputedStyle(document.documentElement);
    const css = (name) => style.getPropertyValue(name).trim();
    const series = [{}];
    const bands = [];
    this.drawn.lines.forEach((line, n) => {
      const colour = css(`--line-${line.colour % 8}`);
      const show = !this.hidden.has(line.name);
      const lone = line.x.length === 1 || line.marked;
      const edge = { stroke: "transparent", points: { show: false }, show };
      const points = lone ? { show: true, size: 7, fill: colour, stroke: colour } : { show: false };
      series.push({ label: line.name, stroke: colour, width: line.dashed ? 1 : 2, dash: dashes(line), points, show });
      series.push({ ...edge, label: `${line.name}, low` }, { ...edge, label: `${line.name}, high` });
      if (line.low) bands.push({ series: [3 * n + 3, 3 * n + 2], fill: `${colour}33` });
    });
    const { names = [], time = false } = this.drawn.x;
    const across = { label: this.drawn.x.label, values: time ? clock : named, space: 70 };
    if (names.length) Object.assign(across, { values: () => names, splits: () => [...names.keys()] });
    const room = (_, low, high) => (low === null || names.length === 0 ? [low, high] : [low - 0.2, high + 0.2]);
    const axis = { stroke: css("--text"), grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid") } };
    return {
      width: this.width(),
      height: HEIGHT,
      series,
      bands,
      legend: { show: false },
      focus: { alpha: 0.3 },
      cursor: { drag: { x: true, y: false }, focus: { prox: 16 }, bind: { dblclick: () => () => this.reset() } },
      scales: {
        x: { time, distr: this.logs.x ? 3 : 1, ...(names.length && { range: room }) },
        y: { distr: this.logs.y ? 3 : 1 },
      },
      axes: [
        { ...axis, ...across },
        { ...axis, label: this.drawn.y.label, values: named, size: 64 },
      ],
      hooks: {
        setCursor: [() => this.read()],
        setSelect: [
          (plot) => {
            if (plot.select.width > 0) {
              const ends = [plot.select.left, plot.select.left + plot.select.width];
              this.range = ends.map((place) => plot.posToVal(place, "x"));
            }
          },
        ],
      },
    };
  }

  width() {
    return Math.max(200, this.place.clientWidth);
  }

  fit() {
    if (this.plot && this.plot.width !== this.width()) this.plot.setSize({ width: this.width(), height: HEIGHT });
  }

  /** The least and the greatest x. */
  whole() {
    const xs = this.plot.data[0];
    return [xs[0], xs[xs.length - 1]];
  }

  /** Zooms and moves: the range becomes `factor` times as long, and moves by `shift` of its length. */
  move(factor, shift) {
    const [first, last] = this.whole().map((x) => this.along(x));
    const { min, max } = this.plot.scales.x;
    let [low, high] = [this.along(min), this.along(max)];
    const middle = (low + high) / 2 + shift * (high - low);
    const half = Math.min(((high - low) * factor) / 2, (last - first) / 2);
    const centre = Math.min(Math.max(middle, first + half), last - half);
    this.zoomTo(this.back(centre - half), this.back(centre + half));
  }

  along(x) {
    return this.logs.x ? Math.log10(x) : x;
  }

  back(place) {
    return this.logs.x ? 10 ** place : place;
  }

  tools() {
    const tools = element(this.figure, "div", { className: "tools", role: "group" });
    tools.setAttribute("aria-labelledby", this.title.id);
    const axes = this.drawn.x.time || this.drawn.x.names?.length ? ["y"] : ["x", "y"];
    const actions = [
      ["Zoom in", "+", () => this.move(0.5, 0)],
      ["Zoom out", "−", () => this.move(2, 0)],
      ["Earlier", "←", () => this.move(1, -0.5)],
      ["Later", "→", () => this.move(1, 0.5)],
      ["Show all", "⤢", () => this.reset()],
    ];
    for (const [name, sign, action] of actions) {
      const button = element(tools, "button", { type: "button", textContent: sign, title: name, onclick: action });
      button.setAttribute("aria-label", name);
    }
    for (const axis of axes) {
      const button = element(tools, "button", { type: "button", textContent: `log ${axis}` });
      button.setAttribute("aria-pressed", String(this.logs[axis]));
      button.onclick = () => {
        this.logs[axis] = !this.logs[axis];
        button.setAttribute("aria-pressed", String(this.logs[axis]));
        this.draw();
      };
    }
  }

  legend() {
    const list = document.createElement("ul");
    list.className = "legend";
    this.place.after(list);
    this.list = list;
    this.buttons = this.drawn.lines.map((line, n) => {
      const button = element(element(list, "li"), "button", { type: "button", onclick: () => this.toggle(n) });
      button.setAttribute("aria-pressed", String(!this.hidden.has(line.name)));
      const swatch = element(button, "span", { className: `swatch colour-${line.colour % 8}` });
      swatch.classList.toggle("dashed", dashes(line).length > 0);
      element(button, "span", { textContent: line.name });
      return button;
    });
    this.shown = this.buttons.map((button) => element(button, "span", { className: "value" }));
    this.read();
  }

  /** Writes into the legend the values at the cursor, or else the last ones. */
  read() {
    const at = this.plot?.cursor.idx ?? null;
    this.drawn.lines.forEach((line, n) => {
      let value = line.y[line.y.length - 1];
      if (at !== null) {
        const x = this.plot.data[0][at];
        value = line.y[nearest(line.x, x)];
      }
      this.shown[n].textContent = Number.isFinite(value) ? short(value) : "–";
    });
  }

  shownX(x) {
    return this.drawn.x.time ? new Date(1000 * x).toLocaleString() : short(x);
  }

  summary() {
    const ends = this.drawn.lines.map((line) => `${line.name} ends at ${short(line.y[line.y.length - 1])}`);
    return `${this.drawn.title}. ${ends.join("; ")}.`;
  }

  /** The same numbers as a table, for those who do not see the curves. */
  values() {
    const details = element(this.figure, "details", { className: "values" });
    element(details, "summary", { textContent: "Values as a table" });
    details.addEventListener("toggle", () => {
      details.querySelector("div")?.remove();
      if (!details.open) return;
      const box = element(details, "div", { className: "wide", tabIndex: 0, role: "region" });
      box.setAttribute("aria-label", `Values of ${this.drawn.title}`);
      const table = element(box, "table");
      const { lines, x, y } = this.drawn;
      const byName = x.names?.length > 0; // each line is at a place of its own
      const head = element(element(table, "thead"), "tr");
      for (const name of [x.label, ...(byName ? [y.label] : lines.map((line) => line.name))])
        element(head, "th", { scope: "col", textContent: name });
      const body = element(table, "tbody");
      for (const [name, ...values] of byName ? lines.map((line) => [line.name, line.y[0]]) : this.rows()) {
        const row = element(body, "tr");
        element(row, "th", { scope: "row", textContent: name });
        for (const value of values) element(row, "td", { textContent: short(value) });
      }
    });
  }

  /** The values of all lines at some x, from the first to the last. */
  rows() {
    const xs = this.plot.data[0];
    const count = Math.min(ROWS, xs.length);
    return Array.from({ length: count }, (_, n) => {
      const x = xs[Math.round((n * (xs.length - 1)) / Math.max(1, count - 1))];
      return [this.shownX(x), ...this.drawn.lines.map((line) => line.y[nearest(line.x, x)])];
    });
  }
}

/** The numbers at the ticks of an axis; a logarithmic one leaves some out. */
function named(_, ticks) {
  return ticks.map((tick) => (tick === null ? "" : short(tick)));
}

/** The times at the ticks of an axis, in the reader's time zone: the day, where a tick is a day or more from the next. */
function clock(_, ticks) {
  const apart = ticks.length > 1 ? ticks[1] - ticks[0] : 0;
  const two = (number) => String(number).padStart(2, "0");
  return ticks.map((tick) => {
    const time = new Date(1000 * tick);
    if (apart >= 86400) return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
    const minutes = `${two(time.getHours())}:${two(time.getMinutes())}`;
    return apart >= 60 ? minutes : `${minutes}:${two(time.getSeconds())}`;
  });
}

function dashes(line) {
  return line.dashed ? [4, 4] : DASHES[Math.floor(line.colour / 2) % DASHES.length];
}

/** The place of the entry of a sorted list that is nearest to `x`. */
export function nearest(xs, x) {
  let [low, high] = [0, xs.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    xs[middle] < x ? (low = middle) : (high = middle);
  }
  return Math.abs(xs[low] - x) <= Math.abs(xs[high] - x) ? low : high;
}

/** A number in four digits. */
export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2).replace("e+", "e");
  return decimal.format(Number(value.toPrecision(4)));
}

/** Sets the text of an element, if it is another one. */
export function write(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/** A new element below `parent`, with these properties. */
export function element(parent, kind, properties = {}) {
  const { role, ...others } = properties;
  const made = Object.assign(document.createElement(kind), others);
  if (role) made.setAttribute("role", role);
  parent.append(made);
  return made;
}
