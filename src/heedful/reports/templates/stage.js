// The first screen: one example that moves with the slider, the choice of it, and the moments of training.

const CHIPS = {
  typical: "typical: near the median in length, confidence and movement of attention",
  "most changed": "most changed: attention has moved furthest since the first step",
  disagrees: "disagrees: the word of highest attention is lowest by word knowledge",
};

/** list: of the page's examples, whose `live` makes one of them move. */
function showStage(list) {
  const holder = document.getElementById("live");
  if (!holder) return;
  const { featured } = page.texts ?? page.pairs, chips = document.getElementById("chips"), why = document.getElementById("why");
  let shown = null;
  const choose = (item, said, chip) => {
    shown = list.live(item);
    holder.replaceChildren(shown.node);
    shown.placed?.();
    say(why, said);
    for (const each of chips.children) each.setAttribute("aria-pressed", String(each === chip));
    shown.show(state.at);
  };
  const remember = () => { shownNow[shown.key] = shown.number; keepAddress(); };
  const short = list.items.filter((item) => item.length === undefined || item.length <= 40);
  const button = (name, pick, said) => {
    const chip = element("button", { type: "button", class: "chip", "aria-pressed": "false", text: name });
    chip.addEventListener("click", () => { choose(pick(), said, chip); remember(); });
    chips.append(chip);
    return chip;
  };
  const made = Object.entries(featured).map(([name, place]) => [button(name, () => list.items[place], CHIPS[name]), list.items[place], CHIPS[name]]);
  button("random", () => (short.length ? short : list.items)[Math.floor(Math.random() * (short.length || list.items.length))], "drawn at random from the examples below");
  const asked = wanted.example === null ? null : list.items.find((item) => item.index + 1 === Number(wanted.example));
  if (asked) choose(asked, "as the address of this page asks", null);
  else choose(made[0][1], made[0][2], made[0][0]);
  if (asked) shownNow[shown.key] = shown.number;
  onStep((at) => shown.show(at), holder, true);
  const key = document.getElementById("live-key");
  const colour = (dark) => { key.replaceChildren(...(shown.legend ?? alphaKey(dark))); shown.recolour(); shown.show(state.at); };
  darkness.addEventListener("change", () => colour(darkness.matches));
  addEventListener("beforeprint", () => colour(false));
  addEventListener("afterprint", () => colour(darkness.matches));
  colour(darkness.matches);
  showMoments();
}

/** Named places on the slider: when attention came to a word for good. */
function showMoments() {
  const holder = document.getElementById("moments");
  if (!page.moments?.length) { holder.remove(); return; }
  holder.append(element("span", { text: "Attention comes to:" }), ...page.moments.map(({ place, text }) => {
    const button = element("button", { type: "button", class: "chip" }, element("span", { text: `step ${steps(page.steps[place])}: ` }), element("i", { dir: "auto", text }));
    button.addEventListener("click", () => { stop(); goTo(place); keepAddress(); });
    onStep((now) => button.classList.toggle("past", now >= place), button);
    return button;
  }));
}

/** A link to an example at the slider's step. */
function linkTo(key, number) {
  const link = element("a", { class: "link", href: `#${key}=${number}`, text: "Link", title: "The address of this example at the slider’s step" });
  link.addEventListener("click", (event) => {
    event.preventDefault();
    delete shownNow.text;
    delete shownNow.pair;
    shownNow[key] = number;
    keepAddress();
  });
  return link;
}
