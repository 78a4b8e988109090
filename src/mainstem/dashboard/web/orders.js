// Orders of an operator. Each is asked for twice: by its button, and in a dialog that says what it does.

import { element } from "chart";

export class Orders {
  constructor(place) {
    this.place = place;
    this.known = "";
    this.answer = element(place, "p", { role: "status", id: "answer" });
    this.buttons = element(place, "div", { className: "tools", role: "group" });
    this.buttons.setAttribute("aria-label", "Orders");
    this.dialog = element(place, "dialog");
    this.question = element(this.dialog, "h3", { id: "question" });
    this.dialog.setAttribute("aria-labelledby", "question");
    this.about = element(this.dialog, "p");
    const choice = element(this.dialog, "div", { className: "tools" });
    this.no = element(choice, "button", { type: "button", textContent: "Cancel", onclick: () => this.dialog.close() });
    this.yes = element(choice, "button", { type: "button", textContent: "Yes", className: "yes" });
  }

  /** Shows the orders that make sense now. */
  show(run, orders) {
    const found = JSON.stringify([run, orders]);
    if (found === this.known) return;
    this.known = found;
    const focused = document.activeElement?.dataset?.order;
    const chosen = new Map([...this.buttons.querySelectorAll("select")].map((each) => [each.name, each.value]));
    this.buttons.replaceChildren();
    for (const each of orders) {
      const group = element(this.buttons, "span", { className: "order" });
      const button = element(group, "button", { type: "button", textContent: each.title });
      button.dataset.order = each.order;
      let of = null;
      if (each.of) {
        of = element(group, "select", { name: each.order });
        of.setAttribute("aria-label", each.title);
        for (const value of each.of) element(of, "option", { textContent: value, value });
        of.value = chosen.get(each.order) ?? each.of[each.of.length - 1];
        if (of.selectedIndex < 0) of.selectedIndex = each.of.length - 1;
      }
      button.onclick = () => this.ask(run, each, of?.value ?? "");
      if (each.order === focused) button.focus();
    }
  }

  ask(run, order, of) {
    this.question.textContent = `${order.title} ${of}`.trim() + `: run ${run}?`;
    this.about.textContent = order.text;
    this.yes.onclick = () => {
      this.dialog.close();
      this.send(run, order.order, of);
    };
    this.dialog.showModal();
    this.no.focus();
  }

  async send(run, order, of) {
    this.answer.textContent = `${order}: sent`;
    try {
      const answer = await fetch("/orders", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Mainstem": "order" },
        body: JSON.stringify({ run, order, of }),
      });
      const found = answer.status === 401 ? { refused: await answer.text() } : await answer.json();
      this.answer.textContent = found.refused ? `${order}: refused: ${found.refused}` : `${order}: done`;
    } catch (error) {
      this.answer.textContent = `${order}: no answer: look at the state before you repeat it`;
    }
  }
}
