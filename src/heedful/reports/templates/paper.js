// The page of a paper: every table as CSV, every figure as SVG and PNG. All else stands in the page already.

const page = JSON.parse(document.getElementById("payload").textContent);

/** The bytes of an image that is embedded in the page. */
function embedded(image) {
  const letters = atob(image.src.slice(image.src.indexOf(",") + 1));
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}

async function paint(name, image) {
  await image.decode();
  const scale = Math.min(2, 4000 / image.naturalWidth);
  const canvas = element("canvas", { width: Math.round(image.naturalWidth * scale), height: Math.round(image.naturalHeight * scale) });
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(`${name}.png`, blob));
}

for (const place of document.querySelectorAll(".save")) {
  const { table, figure, name } = place.dataset;
  if (table) offerTable(place, name, () => page.tables[table]);
  else {
    const image = document.getElementById(figure);
    saveButton(place, name, "SVG", () => download(`${name}.svg`, new Blob([embedded(image)], { type: "image/svg+xml" })));
    saveButton(place, name, "PNG", () => paint(name, image));
  }
}
document.body.dataset.ready = "yes";
