// A table whose columns sort.

import { element } from "chart";

/** Draws a table. A column has a `title` and says whether it is `numeric`; a cell has a `text` and what it sorts by. */
export function table(parent, columns, rows, caption) {
  const box = element(parent, "div", { className: "wide", tabIndex: 0, role: "region" });
  box.setAttribute("aria-label", caption);
  const made = element(box, "table");
  element(made, "caption", { textContent: caption });
  const head = element(element(made, "thead"), "tr");
  const body = element(made, "tbody");
  const heads = columns.map((column, n) => {
    const cell = element(head, "th", { scope: "col", className: column.numeric ? "number" : "" });
    const button = element(cell, "button", { type: "button", textContent: column.title });
    button.onclick = () => sort(n);
    return cell;
  });
  const lines = rows.map((row) => {
    const line = element(body, "tr");
    row.forEach((cell, n) => {
      element(line, "td", { textContent: cell.text, className: columns[n].numeric ? "number" : "" });
    });
    return { line, row };
  });

  function sort(n) {
    const descending = heads[n].getAttribute("aria-sort") === "ascending";
    for (const cell of heads) cell.removeAttribute("aria-sort");
    heads[n].setAttribute("aria-sort", descending ? "descending" : "ascending");
    const by = (each) => each.row[n].by ?? each.row[n].text;
    const order = (a, b) => (typeof by(a) === "number" && typeof by(b) === "number"
      ? by(a) - by(b)
      : String(by(a)).localeCompare(String(by(b))));
    lines.sort((a, b) => (descending ? order(b, a) : order(a, b)));
    body.append(...lines.map((each) => each.line));
  }
  return made;
}
