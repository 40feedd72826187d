// Elements, and pictures and tables that can be saved.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; text is only ever text. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "text") made.textContent = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Write text into an element where it says something else; `name` is its class. */
function say(node, text, name = node.className) {
  if (node.textContent !== text) node.textContent = text;
  if (node.className !== name) node.className = name;
}

/** A table that has its heads and waits for its rows. */
function emptyTable(heads) {
  const row = element("tr", {}, ...heads.map((text) => element("th", { scope: "col", text })));
  return element("table", {}, element("thead", {}, row), element("tbody"));
}

/** An SVG element inside `parent`. */
function shape(parent, tag, attributes = {}, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) spell(made, text);
  parent.append(made);
  return made;
}

/** Write `β^uf` into an SVG text with its second part raised. */
function spell(parent, text) {
  parent.textContent = "";
  let raised = false;
  for (const part of text.split(/(\^\w+)/)) {
    if (!part) continue;
    const tspan = document.createElementNS(SVG, "tspan");
    const up = part.startsWith("^");
    tspan.textContent = up ? part.slice(1) : part;
    if (up) tspan.setAttribute("font-size", "9");
    if (up !== raised) tspan.setAttribute("dy", up ? "-5" : "5");
    raised = up;
    parent.append(tspan);
  }
}

/** An empty picture with a name for those who cannot see it. */
function picture(holder, width, height, title) {
  holder.textContent = "";
  const svg = shape(holder, "svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title });
  return svg;
}

/** Draw again whenever the holder's width changes. */
function whenSized(holder, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.round(holder.clientWidth);
    if (now && now !== width) draw((width = now));
  }).observe(holder);
}

const STYLED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "font-family", "font-size", "font-weight", "text-anchor", "opacity"];

/** A picture as a file of its own: what the style sheet says becomes attributes. One that is not on the page has them already. */
function standalone(svg) {
  if (!svg.isConnected) return new XMLSerializer().serializeToString(svg);
  const copy = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, i) => {
    const style = getComputedStyle(originals[i]);
    for (const name of STYLED) node.setAttribute(name, style.getPropertyValue(name));
    node.removeAttribute("class");
  });
  for (const hit of copy.querySelectorAll("[data-hit]")) hit.remove();
  const ground = document.createElementNS(SVG, "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(ground);
  copy.setAttribute("xmlns", SVG);
  return new XMLSerializer().serializeToString(copy);
}

function download(name, blob) {
  const link = element("a", { download: `${page.name.replace(/[^\w.-]+/g, "-")}-${name}`, href: URL.createObjectURL(blob) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function savePng(name, svg) {
  const image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(standalone(svg));
  await image.decode();
  const scale = 2;
  const canvas = element("canvas", { width: svg.width.baseVal.value * scale, height: svg.height.baseVal.value * scale });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(`${name}.png`, blob));
}

/** Rows, which are objects with the same keys, as CSV; text that a spreadsheet would take for a formula gets an apostrophe. */
function csv(rows) {
  const cell = (value) => {
    const text = String(value ?? "");
    const safe = typeof value === "string" && /^[=+\-@\t]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = [Object.keys(rows[0]), ...rows.map(Object.values)];
  return "\ufeff" + lines.map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** The cells of a table on the page, row by row, under its heads. */
function cellsOf(table) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells].map((cell) => cell.textContent.trim());
  return [...table.tBodies].flatMap((body) => [...body.rows]).map((row) =>
    Object.fromEntries([...row.cells].map((cell, i) => [heads[i] || `column ${i + 1}`, cell.textContent.replace(/\s+/g, " ").trim()])));
}

const tables = { agreements: () => page.rows };

function saveButton(place, name, kind, save) {
  const button = element("button", { type: "button", "aria-label": `Save ${name} as ${kind}`, text: kind });
  button.addEventListener("click", save);
  place.append(button);
}

/** Offer a picture as SVG and as PNG; `svg` finds it when asked. */
function offerPicture(place, name, svg) {
  saveButton(place, name, "SVG", () => download(`${name}.svg`, new Blob([standalone(svg())], { type: "image/svg+xml" })));
  saveButton(place, name, "PNG", () => savePng(name, svg()));
}

/** Offer a table as CSV; `rows` gives it when asked. */
function offerTable(place, name, rows) {
  saveButton(place, name, "CSV", () => download(`${name}.csv`, new Blob([csv(rows())], { type: "text/csv" })));
}

/** Put buttons into every `.save` of the page: SVG and PNG for a chart, CSV for a table. */
function offerSaving() {
  for (const place of document.querySelectorAll(".save")) {
    const { chart, table, of, name } = place.dataset;
    if (of) offerTable(place, name, () => cellsOf(document.getElementById(of)));
    else if (chart) offerPicture(place, name, () => document.querySelector(`#${chart} svg`));
    else offerTable(place, name, () => tables[table]());
  }
}
