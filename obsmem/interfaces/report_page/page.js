"use strict";
/* The page at work: tabs, the source beside what is read, filters, search. Whatever is stored comes in as text nodes. */

const byId = (id) => document.getElementById(id);
const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
const number = new Intl.NumberFormat("en");
const FIRST_SHOWN = 6000; // characters of an entry that are shown at once
const MORE_SHOWN = 200000; // and with every further step
const SPOKEN = { human: "the user", agent: "agent", tool: "tool", harness: "harness", subagent: "sub-agent" };
const NAMES = { user: "said", assistant: "said", thinking: "thought", tool_call: "called", tool_result: "gave", summary: "summary", boundary: "compaction", notice: "notice" };
const page = { entries: null, list: null, terms: [], matches: null, search: 0, from: null, notes: [], citing: new Map(), parts: {} };

/* --- tabs */

function showTab(id, focus = false) {
  for (const tab of all("#tabs [role=tab]")) {
    const chosen = tab.dataset.tab === id;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    byId(tab.dataset.tab).hidden = !chosen;
    if (chosen) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (chosen && focus) tab.focus();
  }
  if (id === "entries" && page.list) page.list.paint();
}

const currentTab = () => document.querySelector("#tabs [aria-selected=true]").dataset.tab;

function startTabs() {
  byId("tabs").hidden = false;
  const tabs = all("#tabs [role=tab]");
  byId("tabs").addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) { showTab(tab.dataset.tab); scrollTo(0, 0); }
  });
  byId("tabs").addEventListener("keydown", (event) => {
    const at = tabs.findIndex((tab) => tab.dataset.tab === currentTab());
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    showTab(tabs[(to + tabs.length) % tabs.length].dataset.tab, true);
    event.preventDefault();
  });
  showTab("timeline");
  document.documentElement.classList.remove("starting");
}

/* --- the source beside */

function openSource(title, nodes, focus) {
  if (byId("source").hidden || !byId("source").contains(document.activeElement)) page.from = document.activeElement;
  byId("source-title").replaceChildren(title);
  byId("source-body").replaceChildren(...nodes);
  byId("source").hidden = false;
  byId("source").scrollTop = 0;
  document.querySelector(".columns").classList.add("with-source");
  if (focus) byId("source").focus({ preventScroll: true });
}

function closeSource() {
  if (byId("source").hidden) return;
  byId("source").hidden = true;
  document.querySelector(".columns").classList.remove("with-source");
  for (const note of all(".note.here")) note.classList.remove("here");
  if (page.from && page.from.isConnected) page.from.focus({ preventScroll: true });
}

/* One entry whole: who, when, where it stood, its words, the notes that stand on it. */
async function entryView(place, terms, of = null) {
  const entries = page.entries, id = entries.idOf(place), foreign = place >= entries.own;
  const words = entries.has(place, MISSING) ? "" : await entries.words(place);
  const tool = entries.tools[entries.tool[place]];
  const facts = [
    `${SPOKEN[entries.speakerOf(place)]} ${NAMES[entries.kindOf(place)]}${tool ? ` (${tool})` : ""}`, entries.timeOf(place),
    `${number.format(entries.tokens[place])} tokens, ${number.format(entries.length[place])} characters`,
    entries.line[place] ? `line ${number.format(entries.line[place])} of the transcript` : "",
    entries.ok[place] === 0 ? "it failed" : "", entries.has(place, LIVE) ? "" : "off the live path",
    entries.has(place, COPIED) ? "copied from the session it was forked from" : "",
    entries.has(place, REPLACED) ? "a later version replaced it" : "", foreign ? "of another session" : "",
    id in page.parts ? `brought part ${page.parts[id]}` : "",
  ];
  const body = make("pre", { class: "stored", tabindex: "0", "aria-label": `Words of entry ${id}` });
  const more = make("button", { type: "button", class: "plain" }), before = make("button", { type: "button", class: "plain" });
  let start = firstSeen(words, terms), shown = start;
  const reveal = (size) => {
    const next = Math.min(words.length, shown + size);
    body.append(...marked(words.slice(shown, next), terms));
    shown = next;
    more.hidden = shown >= words.length;
    more.textContent = `Show ${number.format(Math.min(MORE_SHOWN, words.length - shown))} more of ${number.format(words.length)} characters`;
  };
  const sayBefore = () => {
    before.hidden = start === 0;
    before.textContent = `Show ${number.format(Math.min(MORE_SHOWN, start))} of the ${number.format(start)} characters before`;
  };
  more.addEventListener("click", () => reveal(MORE_SHOWN));
  before.addEventListener("click", () => {
    const from = Math.max(0, start - MORE_SHOWN);
    body.prepend(...marked(words.slice(from, start), terms));
    start = from;
    sayBefore();
  });
  sayBefore();
  if (entries.has(place, MISSING)) body.append(entries.preview[place]);
  else reveal(FIRST_SHOWN);
  const buttons = make("div", { class: "row-of-buttons" });
  if (!foreign) {
    buttons.append(make("button", { type: "button", onclick: () => showInList(place) }, "In the list"));
    if (place > 0) buttons.append(make("button", { type: "button", onclick: () => openEntry(place - 1, true) }, "Entry before"));
    if (place < entries.own - 1) buttons.append(make("button", { type: "button", onclick: () => openEntry(place + 1, true) }, "Entry after"));
  }
  for (const note of page.citing.get(id) || []) {
    if (note !== of) buttons.append(make("button", { type: "button", onclick: () => openNote(note, true) }, `Note ${note.dataset.id.slice(0, 7)}`));
  }
  return [of ? make("h3", {}, make("code", {}, id)) : null, make("p", { class: "meta" }, facts.filter(Boolean).join(" · ")), before, body, more, buttons].filter(Boolean);
}

/* Where to begin so that the first place of a term is seen: at the beginning, where it stands near that. */
function firstSeen(words, terms) {
  const small = words.toLowerCase();
  const places = terms.map((term) => small.indexOf(term)).filter((place) => place >= 0);
  const first = places.length ? Math.min(...places) : 0;
  return first > FIRST_SHOWN - 1000 ? first - 1000 : 0;
}

async function openEntry(place, focus) {
  const nodes = await entryView(place, page.terms);
  openSource(`Entry ${page.entries.idOf(place)}`, nodes, focus);
  const mark = document.querySelector("#source-body mark");
  if (mark) mark.scrollIntoView({ block: "center" });
}

async function openById(id, focus) {
  const place = page.entries.placeOf(id);
  if (place >= 0) await openEntry(place, focus);
  else openSource(`Entry ${id}`, [make("p", {}, "This entry is not in the record any more: it was forgotten, or never had been read whole.")], focus);
}

/* What a note quotes, so that it is seen in the source: words in quotes or backticks, and names. */
function quotedBy(text) {
  const found = Array.from(text.matchAll(/[`"“]([^`"”]{3,})[`"”]|\b([\w-]+[./_:][\w./:-]{3,})/g), (match) => match[1] || match[2]);
  return found.flatMap((one) => one.split(/\s*\[?…\]?\s*/)).map((one) => one.trim().toLowerCase()).filter((one) => one.length > 3).slice(0, 40);
}

async function openNote(note, focus) {
  for (const other of all(".note.here")) other.classList.remove("here");
  note.classList.add("here");
  const notes = note.dataset.supports === undefined ? [note] : note.dataset.supports.split(" ").map((id) => byId(`n${id}`)).filter(Boolean);
  const nodes = [];
  if (note.dataset.supports !== undefined) nodes.push(make("p", { class: "text" }, note.querySelector(".text").textContent));
  for (const one of notes) {
    const text = one.querySelector(".text").textContent;
    nodes.push(make("p", { class: "text" }, one === note ? "" : make("code", {}, `${one.dataset.id.slice(0, 7)} `), text));
    for (const id of one.dataset.entries.split(" ").filter(Boolean)) {
      const place = page.entries.placeOf(id);
      if (place >= 0) nodes.push(...await entryView(place, [...page.terms, ...quotedBy(text)], one));
      else nodes.push(make("p", { class: "warn" }, `${id}: not in the record any more.`));
    }
  }
  openSource(`${note.dataset.supports === undefined ? "Note" : "Reflection"} ${note.dataset.id.slice(0, 7)}`, nodes, focus);
}

function goToNote(id) {
  const note = byId(`n${id}`);
  if (!note) return;
  if (note.hidden) { all("#note-filters input").forEach((box) => { box.checked = true; }); filterNotes(); note.hidden = false; }
  showTab("notes");
  note.scrollIntoView({ block: "center" });
  openNote(note, false);
  note.querySelector("[data-open]").focus({ preventScroll: true });
}

function showInList(place) {
  if (page.list.items.indexOf(place) < 0) clearEntryFilters();
  if (matchMedia("(max-width: 760px)").matches) closeSource(); // it would lie over the list
  showTab("entries");
  page.list.choose(page.list.items.indexOf(place));
  byId("list").focus({ preventScroll: true });
}

/* --- entries */

function entryRow(place) {
  const entries = page.entries, kind = entries.kindOf(place), speaker = entries.speakerOf(place), id = entries.idOf(place);
  const tool = entries.tools[entries.tool[place]], cited = (page.citing.get(id) || []).length;
  const classes = ["row", `k-${kind}`, `sp-${speaker}`, entries.has(place, LIVE) ? "" : "off", entries.ok[place] === 0 ? "failed" : "", id in page.parts ? "block" : ""];
  const label = id in page.parts ? `block ${page.parts[id]}` : tool && kind !== "assistant" ? `${tool}${kind === "tool_result" ? (entries.ok[place] === 0 ? " failed" : " gave") : ""}` : kind === "user" && speaker === "human" ? "user" : `${kind.replace("_", " ")}`;
  return make("div", { class: classes.filter(Boolean).join(" ") },
    make("span", { class: "no" }, `.${entries.seq[place]}`), make("span", { class: "kind" }, label),
    make("span", { class: "preview" }, make("bdi", {}, ...preview(place))),
    make("span", { class: "size" }, cited ? make("span", { class: "cited" }, `${cited} note${cited > 1 ? "s" : ""}`) : null,
      make("span", {}, `${number.format(entries.tokens[place])} t`), make("span", { class: "at" }, entries.timeOf(place).slice(5, 16))));
}

/* An entry's beginning, or what was looked for in it. */
function preview(place) {
  const found = page.matches && page.matches.get(place);
  return found ? marked(found, page.terms) : [page.entries.preview[place] || "(nothing)"];
}

/* The group that a kind is filtered by. */
function groupOf(place) {
  const kind = page.entries.kindOf(place);
  if (kind === "user" && page.entries.speakerOf(place) === "human") return "user";
  return { user: "harness", summary: "harness", boundary: "harness", notice: "harness" }[kind] || kind;
}

function filterEntries(keep = -1) {
  const wanted = new Set(all("#entry-filters input[value]:checked").map((box) => box.value));
  const failed = byId("only-failed").checked, cited = byId("only-cited").checked, entries = page.entries;
  const from = page.matches ? Array.from(page.matches.keys()) : Array.from({ length: entries.own }, (_, place) => place);
  const items = from.filter((place) => wanted.has(groupOf(place)) && (!failed || entries.ok[place] === 0) && (!cited || page.citing.has(entries.idOf(place))));
  byId("list").hidden = !items.length;
  page.list.show(items, keep < 0 ? -1 : items.indexOf(keep));
  const of = items.length === entries.own ? "" : ` of ${number.format(entries.own)}`;
  byId("entries-state").textContent = items.length ? `${number.format(items.length)}${of} entries` : "No entry fits: take a filter or a word of the search away.";
}

function clearEntryFilters() {
  for (const box of all("#entry-filters input[value]")) box.checked = true;
  byId("only-failed").checked = byId("only-cited").checked = false;
  if (page.matches) { byId("query").value = ""; search(); }
  filterEntries();
}

/* --- notes */

const RANK = { critical: 0, high: 1, medium: 2, low: 3 };
const ORDERS = {
  place: (a, b) => a.dataset.place - b.dataset.place || a.dataset.at - b.dataset.at,
  relevance: (a, b) => RANK[a.dataset.relevance] - RANK[b.dataset.relevance] || ORDERS.place(a, b),
  newest: (a, b) => b.dataset.at - a.dataset.at,
};

function filterNotes() {
  const wanted = all("#note-filters fieldset").map((set) => [set.dataset.of, new Set(all(":checked", set).map((box) => box.value))]);
  let shown = 0;
  for (const note of page.notes) {
    const fits = wanted.every(([name, values]) => !(name in note.dataset) || values.has(note.dataset[name]));
    note.hidden = !(fits && page.terms.every((term) => note.small.includes(term)));
    shown += note.hidden ? 0 : 1;
  }
  byId("notes-state").textContent = page.notes.length ? `${number.format(shown)} of ${number.format(page.notes.length)} notes and reflections` : "";
  return shown;
}

function startNotes() {
  page.notes = all("#notes .note[data-state]");
  for (const note of page.notes) {
    note.small = note.querySelector(".text").textContent.toLowerCase();
    for (const id of (note.dataset.entries || "").split(" ").filter(Boolean)) {
      if (!page.citing.has(id)) page.citing.set(id, []);
      page.citing.get(id).push(note);
    }
  }
  byId("note-filters").hidden = !page.notes.length;
  byId("note-filters").addEventListener("change", (event) => {
    if (event.target.id === "note-order") {
      const cards = byId("note-cards");
      cards.append(...all(":scope > .note", cards).sort(ORDERS[event.target.value]));
    }
    filterNotes();
  });
  byId("note-filters").addEventListener("submit", (event) => event.preventDefault());
  filterNotes();
}

/* --- search */

async function search() {
  const turn = page.search += 1, terms = termsOf(byId("query").value), found = byId("found");
  page.terms = terms;
  const notes = filterNotes();
  if (!terms.length) {
    page.matches = null;
    found.textContent = "";
    filterEntries();
    return;
  }
  found.textContent = "looking …";
  const places = await page.entries.find(terms, () => turn === page.search, (share, count) => {
    if (turn === page.search && share < 1) found.textContent = `looking … ${Math.round(share * 100)} %, ${number.format(count)} entries so far`;
  });
  if (places === null) return;
  page.matches = places;
  filterEntries();
  found.textContent = `${number.format(places.size)} ${places.size === 1 ? "entry" : "entries"}, ${number.format(notes)} ${notes === 1 ? "note" : "notes"}`;
}

function startSearch() {
  const form = document.querySelector(".search"), query = byId("query");
  let waiting = 0;
  form.hidden = false;
  query.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 200);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    search().then(() => {
      if (!["entries", "notes"].includes(currentTab())) showTab("entries");
      if (currentTab() === "entries" && page.list.items.length) { byId("list").focus(); page.list.choose(0); }
    });
  });
}

/* --- everything together */

function onClick(event) {
  const source = event.target.closest("[data-entry]"), note = event.target.closest("[data-note]"), open = event.target.closest("[data-open]");
  if (source) openById(source.dataset.entry, event.detail === 0);
  else if (note) goToNote(note.dataset.note);
  else if (open) openNote(open.closest(".note"), event.detail === 0); // 0: by the keyboard
  else return;
  event.preventDefault();
}

function onChart(event) {
  const box = byId("chart").querySelector(".tokens").getBoundingClientRect();
  const share = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
  showInList(page.entries.placeNear(Math.round(share * Number(byId("chart").dataset.last))));
}

async function start() {
  const [columns, parts] = await Promise.all([unpack("columns"), unpack("marks")]);
  page.entries = new Entries(columns, document.body.dataset.handle);
  page.parts = parts;
  const head = document.querySelector(".top");
  new ResizeObserver(() => document.documentElement.style.setProperty("--head", `${head.offsetHeight}px`)).observe(head);
  startTabs();
  startNotes();
  page.list = new RowList(byId("list"), entryRow, openEntry);
  byId("entry-filters").hidden = false;
  byId("entry-filters").addEventListener("change", () => filterEntries());
  startSearch();
  filterEntries();
  document.addEventListener("click", onClick);
  byId("source-close").addEventListener("click", closeSource);
  if (byId("chart")) for (const picture of all("#chart > svg")) picture.addEventListener("click", onChart);
  document.addEventListener("keydown", (event) => {
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
    if (event.key === "Escape") closeSource();
    else if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { byId("query").focus(); event.preventDefault(); }
  });
  addEventListener("beforeprint", () => all("details").forEach((one) => { one.open = true; }));
  const wanted = location.hash.match(/^#e(\d+)$/), note = location.hash.match(/^#n([0-9a-f]{12})$/);
  if (wanted) openById(`${page.entries.handle}.${wanted[1]}`, false);
  else if (note) goToNote(note[1]);
  document.body.dataset.ready = "yes";
}

start();
