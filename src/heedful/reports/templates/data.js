"use strict";
// What the page knows, and the one step of training that all of it is shown at.

const page = JSON.parse(document.getElementById("payload").textContent);
const TERMS = {
  classification: { rows: "texts", accuracy: "accuracy", shown: "validation texts" },
  following: { rows: "texts", accuracy: "accuracy", shown: "probe texts" },
  translation: { rows: "output words", accuracy: "token accuracy" },
}[page.task];
if (page.rows_are && page.task !== "translation") TERMS.rows = page.rows_are;
// `at` is where the slider stands, between recorded steps too; `step` is the last recorded one that it has reached.
const last = page.steps.length - 1, still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const state = { at: last, step: last };
const REST = 120; // milliseconds the slider stands still before what is out of sight follows it
const watchers = new Map();
let frame = 0, rest = 0;

const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const watcher = watchers.get(target);
    if (!watcher) continue;
    watcher.seen = isIntersecting;
    if (isIntersecting) bring(watcher);
  }
}, { rootMargin: "100px" });

/**
 * Call `show` now and whenever the slider moves: at once while `holder` is in sight, and after a rest while it is not.
 * It is given a place among the recorded steps: a whole one, or with `smooth` one between them too.
 */
function onStep(show, holder, smooth = false) {
  const key = smooth ? "at" : "step";
  watchers.set(holder, { show, key, seen: true, at: state[key] });
  sight.observe(holder);
  show(state[key]);
}

/** What stands in `holder` follows the slider no more. */
function offStep(holder) {
  watchers.delete(holder);
  sight.unobserve(holder);
}

function bring(watcher) {
  if (watcher.at === state[watcher.key]) return;
  watcher.at = state[watcher.key];
  watcher.show(watcher.at);
}

/** Bring everything to the slider's step, in sight or not. */
function catchUp() {
  clearTimeout(rest);
  rest = 0;
  for (const watcher of watchers.values()) bring(watcher);
}

/** Go to a place among the recorded steps; everything in sight is redrawn once, at the next frame. */
function goTo(place) {
  state.at = Math.min(Math.max(place, 0), last);
  state.step = Math.floor(state.at + 1e-6);
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    clearTimeout(rest);
    for (const watcher of watchers.values()) if (watcher.seen) bring(watcher);
    rest = setTimeout(catchUp, REST);
  });
}

/** The two recorded places around a place, and how far it is from the first to the second. */
function around(at) {
  const from = Math.min(Math.floor(at + 1e-6), last);
  return [from, Math.min(from + 1, last), Math.max(at - from, 0)];
}

/** The training step at a place, between the recorded ones too. */
function stepAt(at) {
  const [from, to, share] = around(at);
  return Math.round(page.steps[from] + share * (page.steps[to] - page.steps[from]));
}

addEventListener("beforeprint", catchUp);
addEventListener("click", ({ target }) => { if (target.closest?.(".save")) catchUp(); }, true);

/** The embedded typed arrays by name, each with its notes. */
async function unpack() {
  const letters = atob(document.getElementById("arrays").textContent.trim());
  const packed = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const kinds = { Uint8Array, Int8Array, Uint16Array, Int16Array, Uint32Array, Float32Array };
  const arrays = {};
  for (const [name, note] of Object.entries(page.arrays)) {
    arrays[name] = { ...note, values: new kinds[note.type](buffer.slice(note.start, note.start + note.bytes)) };
  }
  return arrays;
}

const NBSP = "\u00a0";

function percent(share, digits = 1) {
  return share === null || share === undefined ? "–" : (100 * share).toFixed(digits).replace("-", "−") + NBSP + "%";
}

function range(low, high) {
  const digits = high - low < 0.03 ? 1 : 0;
  return `${(100 * low).toFixed(digits)}–${(100 * high).toFixed(digits)}`;
}

function steps(n) {
  return n.toLocaleString("en");
}

/** The text of a word, or of a place that is no word. */
function spelt(word, special) {
  if (special === "unknown" && word && word !== "<unk>") return word;
  return { start: "‹start›", end: "‹end›", unknown: "‹unknown›", pad: "‹pad›" }[special] ?? word;
}
