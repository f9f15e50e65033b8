"use strict";
/* What the page carries: the entries' words in packed pieces, unpacked one by one when they are asked for.
   Nothing here knows how it looks; stored text is only ever handed on as text. */

const KINDS = ["user", "assistant", "thinking", "tool_call", "tool_result", "summary", "boundary", "notice"];
const SPEAKERS = ["human", "agent", "tool", "harness", "subagent"];
const LIVE = 1, COPIED = 2, REPLACED = 4, MISSING = 8, FOREIGN = 16;
const HELD_PIECES = 12; // unpacked pieces that are kept; each is some 300,000 characters

async function unpack(id) {
  const letters = atob(document.getElementById(id).textContent.trim());
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

class Entries {
  /* All entries by their place in the page; ``columns`` are those of the Python side. */
  constructor(columns, handle) {
    Object.assign(this, columns);
    this.handle = handle;
    this.count = columns.seq.length;
    this.own = this.count - columns.ids.length; // those of other sessions stand behind
    this.held = new Map();
    this.places = new Map();
    for (let place = 0; place < this.count; place += 1) this.places.set(this.idOf(place), place);
  }

  idOf(place) {
    return place < this.own ? `${this.handle}.${this.seq[place]}` : this.ids[place - this.own];
  }

  placeOf(id) {
    return this.places.has(id) ? this.places.get(id) : -1;
  }

  /* The own entry that stands at a number, or the next one after it. */
  placeNear(seq) {
    let low = 0, high = this.own - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.seq[middle] < seq) low = middle + 1; else high = middle;
    }
    return low;
  }

  pieceOf(place) {
    let low = 0, high = this.pieces.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.pieces[middle] <= place) low = middle; else high = middle - 1;
    }
    return low;
  }

  piece(number) {
    const known = this.held.get(number);
    if (known) {
      this.held.delete(number);
      this.held.set(number, known); // the last used stands last
      return known;
    }
    const words = unpack(`piece-${number}`);
    this.held.set(number, words);
    if (this.held.size > HELD_PIECES) this.held.delete(this.held.keys().next().value);
    return words;
  }

  async words(place) {
    const number = this.pieceOf(place);
    return (await this.piece(number))[place - this.pieces[number]];
  }

  has(place, mark) {
    return (this.marks[place] & mark) !== 0;
  }

  kindOf(place) {
    return KINDS[this.kind[place]];
  }

  speakerOf(place) {
    return SPEAKERS[this.speaker[place]];
  }

  /* ``YYYY-MM-DD HH:MM:SS`` as the clock of whoever made the page showed it; '' where no time was told. */
  timeOf(place) {
    return this.at[place] ? new Date(this.at[place]).toISOString().slice(0, 19).replace("T", " ") : "";
  }

  /* The places of all own entries that hold every term, in order, each with the words around the first; ``going`` says false
     when nobody waits any more.
     Pieces are read past those that are held, so that a search does not push out what is looked at. */
  async find(terms, going, progress) {
    const found = new Map();
    for (let number = 0; number < this.pieces.length; number += 1) {
      const words = await (this.held.get(number) || unpack(`piece-${number}`));
      if (!going()) return null;
      for (let index = 0; index < words.length; index += 1) {
        const place = this.pieces[number] + index;
        const text = `${words[index]}\n${this.tools[this.tool[place]]}`.toLowerCase();
        if (place < this.own && terms.every((term) => text.includes(term))) found.set(place, around(words[index], text.indexOf(terms[0])));
      }
      progress((number + 1) / this.pieces.length, found.size);
    }
    return found;
  }
}

/* One line of what stands at a place of a text, as a row of a list has room for it. */
function around(text, at) {
  const from = at > 40 ? at - 25 : 0;
  return (from ? "… " : "") + text.slice(from, from + 160).replace(/\s+/g, " ");
}

/* The words of a query, in small letters; what stands in quotes is one. */
function termsOf(query) {
  return Array.from(query.matchAll(/"([^"]+)"?|(\S+)/g), (match) => (match[1] || match[2]).toLowerCase()).filter(Boolean);
}

/* An element with text and children; text is never read as markup. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/* A text as nodes, with every place of a term in a mark. */
function marked(text, terms) {
  if (!terms.length) return [text];
  const small = text.toLowerCase();
  if (small.length !== text.length) return [text]; // a letter that grows when it is made small: places would not fit
  const nodes = [];
  let at = 0;
  for (let marks = 0; marks < 2000; marks += 1) {
    let next = -1, size = 0;
    for (const term of terms) {
      const place = small.indexOf(term, at);
      if (place >= 0 && (next < 0 || place < next || (place === next && term.length > size))) {
        next = place;
        size = term.length;
      }
    }
    if (next < 0) break;
    nodes.push(text.slice(at, next), make("mark", {}, text.slice(next, next + size)));
    at = next + size;
  }
  nodes.push(text.slice(at));
  return nodes;
}
