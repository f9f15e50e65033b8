"use strict";
/* A list of any length of which only the rows that are seen exist. A listbox for the keyboard and for screen readers:
   the list has the focus, the row that is chosen is named by aria-activedescendant. */

const MOST_HEIGHT = 16000000; // pixels: browsers draw no element that is much higher
const BEYOND = 8; // rows above and below that exist, too

class RowList {
  /* ``draw`` makes the row of an item, ``open`` is called with the item that is chosen by a click or Enter. */
  constructor(box, draw, open) {
    this.box = box;
    this.draw = draw;
    this.open = open;
    this.items = [];
    this.chosen = -1;
    this.rows = new Map();
    this.room = make("div", { class: "room", role: "presentation" });
    box.append(this.room);
    box.addEventListener("scroll", () => this.paint(), { passive: true });
    box.addEventListener("keydown", (event) => this.onKey(event));
    box.addEventListener("click", (event) => this.onClick(event));
    this.narrow = false;
    new ResizeObserver(() => this.fit()).observe(box);
  }

  get rowHeight() {
    return this.narrow ? 58 : 38;
  }

  /* Two lines a row where the list is narrow. */
  fit() {
    const narrow = this.box.clientWidth > 0 ? this.box.clientWidth < 560 : this.narrow;
    if (narrow === this.narrow) { this.paint(); return; }
    const first = Math.round(this.first);
    this.narrow = narrow;
    this.box.classList.toggle("narrow", narrow);
    this.show(this.items, this.chosen);
    if (this.chosen < 0) this.box.scrollTop = first * this.rowHeight;
  }

  /* Items that may be scrolled to: a list beyond the height that browsers draw is squeezed. */
  get height() {
    return Math.min(MOST_HEIGHT, this.items.length * this.rowHeight);
  }

  show(items, chosen = -1) {
    this.items = items;
    this.chosen = Math.min(chosen, items.length - 1);
    this.room.style.height = `${this.height}px`;
    this.clear();
    if (this.chosen >= 0) this.reveal(this.chosen); else this.box.scrollTop = 0;
    this.paint();
  }

  clear() {
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
  }

  get first() {
    const hidden = this.height - this.box.clientHeight;
    const beyond = this.items.length * this.rowHeight - this.box.clientHeight;
    return hidden > 0 ? (this.box.scrollTop / hidden) * beyond / this.rowHeight : 0;
  }

  paint() {
    if (!this.box.clientHeight) return;
    const first = this.first, seen = this.box.clientHeight / this.rowHeight;
    const from = Math.max(0, Math.floor(first) - BEYOND), to = Math.min(this.items.length, Math.ceil(first + seen) + BEYOND);
    for (const [index, row] of this.rows) {
      if (index < from || index >= to) {
        row.remove();
        this.rows.delete(index);
      }
    }
    const shift = this.box.scrollTop - first * this.rowHeight;
    for (let index = from; index < to; index += 1) {
      let row = this.rows.get(index);
      if (!row) {
        row = this.draw(this.items[index]);
        row.id = `row-${index}`;
        row.setAttribute("role", "option");
        row.setAttribute("aria-setsize", this.items.length);
        row.setAttribute("aria-posinset", index + 1);
        row.dataset.index = index;
        row.style.height = `${this.rowHeight}px`;
        this.rows.set(index, row);
        this.room.append(row);
      }
      row.style.top = `${index * this.rowHeight + shift}px`;
      row.setAttribute("aria-selected", index === this.chosen);
    }
    if (this.rows.has(this.chosen)) this.box.setAttribute("aria-activedescendant", `row-${this.chosen}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  reveal(index) {
    const seen = Math.max(1, Math.floor(this.box.clientHeight / this.rowHeight) - 1), first = this.first;
    const hidden = this.height - this.box.clientHeight, beyond = this.items.length * this.rowHeight - this.box.clientHeight;
    let wanted = first;
    if (index < first) wanted = index;
    else if (index > first + seen - 1) wanted = index - seen + 1;
    if (Math.abs(index - first) > seen * 2) wanted = Math.max(0, index - Math.floor(seen / 3));
    if (wanted !== first && beyond > 0) this.box.scrollTop = (wanted * this.rowHeight / beyond) * hidden;
  }

  choose(index) {
    if (!this.items.length) return;
    this.chosen = Math.max(0, Math.min(this.items.length - 1, index));
    this.reveal(this.chosen);
    this.paint();
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (event.key in steps) this.choose(this.chosen < 0 ? Math.floor(this.first) : this.chosen + steps[event.key]);
    else if (event.key === "Home") this.choose(0);
    else if (event.key === "End") this.choose(this.items.length - 1);
    else if ((event.key === "Enter" || event.key === " ") && this.chosen >= 0) this.open(this.items[this.chosen], true);
    else return;
    event.preventDefault();
  }

  onClick(event) {
    const row = event.target.closest("[data-index]");
    if (!row) return;
    this.choose(Number(row.dataset.index));
    this.open(this.items[this.chosen], false);
  }
}
