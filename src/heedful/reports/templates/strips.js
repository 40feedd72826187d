// A card of shaded words as a picture of its own, laid out as it stands on the page.

function stripsPicture(card) {
  card.classList.add("pictured");
  const box = card.getBoundingClientRect(), svg = document.createElementNS(SVG, "svg");
  const size = { width: Math.ceil(box.width), height: Math.ceil(card.querySelector(".sides").getBoundingClientRect().bottom - box.top + 14) };
  for (const [name, value] of Object.entries({ ...size, viewBox: `0 0 ${size.width} ${size.height}` })) svg.setAttribute(name, value);
  shape(svg, "rect", { ...size, fill: getComputedStyle(card).backgroundColor });
  const write = (node, rect, text) => {
    const style = getComputedStyle(node), high = parseFloat(style.fontSize);
    const made = shape(svg, "text", { x: rect.left + rect.width / 2 - box.left, y: rect.top + rect.height / 2 - box.top + 0.35 * high,
      "text-anchor": "middle", "font-family": style.fontFamily, "font-size": high, "font-weight": style.fontWeight, "font-style": style.fontStyle, fill: style.color });
    made.textContent = text;
  };
  for (const node of card.querySelectorAll("h3, h4, .q")) {
    const words = document.createRange();
    words.selectNodeContents(node);
    write(node, words.getBoundingClientRect(), node.textContent.trim());
  }
  for (const word of card.querySelectorAll(".w")) {
    const rects = [...word.getClientRects()];
    for (const rect of rects) {
      const place = { x: rect.left - box.left, y: rect.top - box.top, width: rect.width, height: rect.height, rx: 3 };
      shape(svg, "rect", { ...place, fill: getComputedStyle(word).backgroundColor });
      if (word.classList.contains("ring")) shape(svg, "rect", { ...place, fill: "none", stroke: getComputedStyle(card).color, "stroke-width": 2 });
    }
    const letters = [...word.textContent];
    write(word, rects[0], rects.length > 1 ? letters.slice(0, Math.floor(letters.length / rects.length / 2)).join("") + "…" : word.textContent);
  }
  card.classList.remove("pictured");
  return svg;
}
