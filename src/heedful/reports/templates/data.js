"use strict";
// What the page knows, and the one step of training that all of it is shown at.

const page = JSON.parse(document.getElementById("payload").textContent);
const TERMS = {
  classification: { rows: "texts", accuracy: "accuracy", shown: "validation texts" },
  following: { rows: "texts", accuracy: "accuracy", shown: "probe texts" },
  translation: { rows: "output words", accuracy: "token accuracy" },
}[page.task];
const state = { step: page.steps.length - 1 };
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

/** Call `show` now and whenever the step changes: at once while `holder` is in sight, and after a rest while it is not. */
function onStep(show, holder) {
  watchers.set(holder, { show, seen: true, at: state.step });
  sight.observe(holder);
  show(state.step);
}

/** What stands in `holder` follows the slider no more. */
function offStep(holder) {
  watchers.delete(holder);
  sight.unobserve(holder);
}

function bring(watcher) {
  if (watcher.at === state.step) return;
  watcher.at = state.step;
  watcher.show(state.step);
}

/** Bring everything to the slider's step, in sight or not. */
function catchUp() {
  clearTimeout(rest);
  rest = 0;
  for (const watcher of watchers.values()) bring(watcher);
}

/** Go to a recorded step, by its place among them; everything in sight is redrawn once, at the next frame. */
function goTo(place) {
  state.step = Math.min(Math.max(place, 0), page.steps.length - 1);
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    clearTimeout(rest);
    for (const watcher of watchers.values()) if (watcher.seen) bring(watcher);
    rest = setTimeout(catchUp, REST);
  });
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
