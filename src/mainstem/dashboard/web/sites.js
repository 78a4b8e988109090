// The sites of a run: those that need somebody first, found by name, with a curve of their own where one asks for it.

import { element, short, write } from "chart";

const MOST = 50; // rows
const FEW = 8; // sites, up to which all have curves; and curves that can be asked for
const FIRST = ["quarantined", "lost", "late", "away", "present"];
const COLUMNS = [
  ["site", "Site"],
  ["state", "State"],
  ["recent_loss", "Recent loss"],
  ["samples", "Samples"],
  ["uploads", "Uploads"],
  ["staleness", "Staleness"],
  ["norm", "Norm"],
  ["refused", "Refused"],
  ["bytes_up", "Bytes up"],
  ["gain", "Gain over alone"], // where sites report it
];

export class Sites {
  /** `chosen`: the sites with curves; `changed` is called when they change. */
  constructor(place, chosen, changed) {
    this.place = place;
    this.chosen = chosen;
    this.changed = changed;
    this.found = null;
    element(place, "h3", { textContent: "Sites" });
    const label = element(place, "label", { textContent: "Find a site " });
    this.filter = element(label, "input", { type: "search", oninput: () => this.draw() });
    this.count = element(place, "p", { className: "made", role: "status" });
    const box = element(place, "div", { className: "wide", tabIndex: 0, role: "region" });
    box.setAttribute("aria-label", "Sites");
    this.table = element(box, "table");
    const head = element(element(this.table, "thead"), "tr");
    this.titles = COLUMNS.map(([, title]) => element(head, "th", { scope: "col", textContent: title }));
    element(head, "th", { scope: "col", textContent: "Curve" });
    this.body = element(this.table, "tbody");
    this.rows = [];
  }

  /** Shows the columns of the sites; without any, nothing. */
  show(found) {
    this.place.hidden = !found;
    this.found = found ?? null;
    if (found && !document.hidden) this.draw();
  }

  draw() {
    const { found } = this;
    if (!found) return;
    const wanted = this.filter.value.toLowerCase();
    const all = found.site.map((_, k) => k);
    const matching = all.filter((k) => found.site[k].toLowerCase().includes(wanted));
    const rank = (k) => FIRST.indexOf(found.state[k]);
    matching.sort((a, b) => rank(a) - rank(b) || found.recent_loss[b] - found.recent_loss[a]);
    const shown = matching.slice(0, MOST);
    const more = matching.length > MOST ? `, the first ${MOST} are shown: find others by name` : "";
    write(this.count, `${matching.length} of ${found.site.length} sites${more}`);
    while (this.rows.length > shown.length) this.rows.pop().line.remove();
    COLUMNS.forEach(([name], m) => (this.titles[m].hidden = !(name in found)));
    shown.forEach((k, n) => this.row(n, k));
  }

  row(n, k) {
    this.rows[n] ??= this.made();
    const { line, cells, shown, button } = this.rows[n];
    const { found } = this;
    COLUMNS.forEach(([name], m) => {
      const value = found[name]?.[k] ?? "";
      cells[m].hidden = !(name in found);
      if (shown[m] === value) return;
      shown[m] = value;
      cells[m].textContent = typeof value === "number" ? short(value) : value;
    });
    line.className = found.state[k] === "present" ? "" : "needs-somebody";
    const site = found.site[k];
    button.hidden = found.site.length <= FEW;
    button.dataset.site = site;
    button.setAttribute("aria-label", `Curve of ${site}`);
    button.setAttribute("aria-pressed", String(this.chosen.has(site)));
  }

  made() {
    const line = element(this.body, "tr");
    const cells = COLUMNS.map(([name]) => element(line, "td", { className: name === "site" || name === "state" ? "" : "number" }));
    const button = element(element(line, "td"), "button", { type: "button", textContent: "show" });
    button.onclick = () => {
      const { site } = button.dataset;
      if (this.chosen.has(site)) this.chosen.delete(site);
      else if (this.chosen.size < FEW) this.chosen.add(site);
      this.draw();
      this.changed();
    };
    return { line, cells, shown: [], button };
  }
}
