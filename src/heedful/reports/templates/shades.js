// Colours that stand for numbers, and numbers that stand in the embedded arrays.

const RAMPS = {
  light: {
    alpha: ["#ffffff", "#d5caf2", "#8d6bd0", "#43207f"],
    for: ["#ffffff", "#bcd7f0", "#4e93d3", "#11497f"],
    against: ["#ffffff", "#fdd3a8", "#ef8a2c", "#9a4300"],
  },
  dark: {
    alpha: ["#1c1e25", "#43356f", "#8f70e2", "#e0d6ff"],
    for: ["#1c1e25", "#1b3f63", "#4089cc", "#c2e2ff"],
    against: ["#1c1e25", "#5a3512", "#c56f1c", "#ffcb92"],
  },
};

const darkness = matchMedia("(prefers-color-scheme: dark)");

function mix(ramp, amount) {
  const at = Math.min(Math.max(amount, 0), 1) * (ramp.length - 1);
  const i = Math.min(Math.floor(at), ramp.length - 2);
  const channel = (colour, k) => parseInt(colour.slice(1 + 2 * k, 3 + 2 * k), 16);
  return [0, 1, 2].map((k) => Math.round(channel(ramp[i], k) + (at - i) * (channel(ramp[i + 1], k) - channel(ramp[i], k))));
}

/** Black or white, whichever can be read on a colour. */
function legible([r, g, b]) {
  const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > 0.179 ? "#000" : "#fff";
}

function shade(ramp, amount, against = false) {
  const colour = mix(ramp, amount);
  return { ground: `rgb(${colour.join(" ")})`, ink: legible(colour), against: against && amount > 0.2 };
}

/** What a stored level stands for. */
const meaning = {
  alpha: (level) => (level / 255) ** 2,
  signed: (level, largest) => Math.sign(level) * (level / 127) ** 2 * largest,
};

function signed(number) {
  return (number < 0 ? "−" : "+") + Math.abs(number).toPrecision(2);
}

/** A strip of the colours of [ramp, amount] pairs with a number in each, for a key. */
function numberedRamp(dark, colours, numbers) {
  const ramps = RAMPS[dark ? "dark" : "light"];
  return element("span", { class: "ramp numbered" }, ...colours.map(([name, amount], i) => {
    const step = element("i", { text: numbers[i] }), { ground, ink } = shade(ramps[name], amount);
    step.style.backgroundColor = ground;
    step.style.color = ink;
    return step;
  }));
}

/** The key of attention: one scale on every page, a square-root one, so that small weights can be told apart. */
function alphaKey(dark) {
  const levels = [0, 0.2, 0.4, 0.6, 0.8, 1];
  return [element("span", {}, "attention", numberedRamp(dark, levels.map((a) => ["alpha", a]), levels.map((a) => `${Math.round(100 * a * a)}`)), `% of the weight; ${dark ? "brighter" : "darker"} = more attention`)];
}

const signedOdds = (s) => (s < 0 ? "−" : s > 0 ? "+" : "") + Math.abs(s).toFixed(1);
