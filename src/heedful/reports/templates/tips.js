// A small note beside what is pointed at or has the focus: values of words, and definitions of symbols.

const tip = element("div", { id: "tip", role: "tooltip" });
tip.hidden = true;
document.body.append(tip);

/** Show text beside a box of the screen, inside the window. */
function showTip(text, box) {
  tip.textContent = text;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect(), edge = document.documentElement.clientWidth;
  tip.style.left = `${Math.max(4, Math.min(box.left + box.width / 2 - width / 2, edge - width - 4))}px`;
  tip.style.top = `${box.top - height - 6 > 0 ? box.top - height - 6 : box.bottom + 6}px`;
}

function hideTip() {
  tip.hidden = true;
}

/** Show what `read` says of the element that is pointed at; nothing where it says null. */
function pointAt(holder, read) {
  holder.addEventListener("pointerover", ({ target }) => {
    const text = read(target);
    if (text === null) hideTip();
    else showTip(text, target.getBoundingClientRect());
  });
  holder.addEventListener("pointerleave", hideTip);
}

addEventListener("scroll", () => { if (document.activeElement?.matches("a.term") && !tip.hidden) define(document.activeElement); else hideTip(); }, { passive: true });
addEventListener("keydown", ({ key }) => { if (key === "Escape") hideTip(); });

/** The definition of a symbol, from the glossary entry that it leads to. */
function define(term) {
  const entry = document.querySelector(term.getAttribute("href"));
  showTip(`${entry.textContent}: ${entry.nextElementSibling.textContent}`, term.getBoundingClientRect());
}

for (const term of document.querySelectorAll("a.term")) {
  for (const event of ["pointerenter", "focus"]) term.addEventListener(event, () => define(term));
  for (const event of ["pointerleave", "blur"]) term.addEventListener(event, hideTip);
}
