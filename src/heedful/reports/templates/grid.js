// A table of buttons, one for each head: a click chooses one, arrow keys walk from one to the next.

/** Put a button that holds `content` into a cell, whose data-map names the head. */
function headButton(cell, label, content, choose) {
  const button = element("button", { type: "button", "aria-label": label, title: label }, content);
  button.addEventListener("click", () => choose(cell.dataset.map));
  cell.replaceChildren(button);
  return button;
}

/** Mark the button of one head in every table that has it; with `focus`, go to it. */
function pressHead(map, focus) {
  for (const button of document.querySelectorAll(".grid td.cell button")) {
    const own = button.parentElement.dataset.map === map;
    button.setAttribute("aria-pressed", own);
    button.tabIndex = own ? 0 : -1;
    if (own && focus && button.offsetParent) button.focus();
  }
}

/** Let arrow keys walk through the tables in `holder`. */
function walkHeads(holder, choose) {
  holder.addEventListener("keydown", (event) => {
    const cell = event.target.closest("td");
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (!cell || !(down || right)) return;
    event.preventDefault();
    event.stopPropagation();
    const row = cell.parentElement.parentElement.rows[cell.parentElement.sectionRowIndex + down];
    const next = row?.cells[cell.cellIndex + right];
    if (next?.dataset.map) choose(next.dataset.map, true);
  });
}
