// The charts of one run: agreements as dots and whiskers; accuracy, agreement and entropy over training.

/** Own and cross of each pair beside one another, with chance and the paper. */
function drawAgreements(holder, width) {
  const series = [...new Set(page.agreements.map((a) => a.convention))];
  const rows = [...new Set(page.agreements.map((a) => a.key))].map((key) => {
    const pair = page.agreements.filter((a) => a.key === key);
    return { label: pair[0].symbol, title: pair[0].concept, published: page.paper[key], dots: pair.map((a) => ({ ...a, mark: series.indexOf(a.convention) })) };
  });
  const both = series.length > 1 ? ", own and cross," : "";
  const title = `Agreements${both} with their intervals and chance; the table below has the numbers`;
  dotsAndWhiskers(holder, width, { title, unit: `% of ${TERMS.rows} that agree`, series, rows, chance: page.random, control: page.control });
}

function drawCurves() {
  const drawn = page.accuracy.filter((m) => m.kind === "standard" || m.kind === "uniform");
  const accuracies = drawn.flatMap((m) => m.values).concat(page.references.map((r) => r.value)).filter((v) => v !== null);
  if (drawn.length) lineChart(document.getElementById("accuracy-chart"), `Validation ${TERMS.accuracy} over training`, {
    series: byKind(drawn.map((m) => ({ ...m, rings: m.best === undefined ? [] : [[m.best, `counts at step ${steps(m.best)}, its lowest loss`]] }))),
    references: page.references.map((r) => ({ ...r, title: { "logistic regression": "logistic regr.", "most frequent label": "guessing" }[r.title] ?? r.title })),
    low: Math.floor(Math.min(...accuracies) * 10) / 10,
    high: Math.ceil(Math.max(...accuracies) * 10) / 10,
  });
  const keys = [...new Set(page.agreements.map((a) => a.key))];
  const highest = Math.max(...page.agreements.flatMap((a) => a.curve.values));
  const agreements = (convention) => ({
    series: page.agreements.filter((a) => a.convention === convention)
      .map((a) => ({ label: a.concept, symbol: a.symbol, colour: keys.indexOf(a.key), lines: [{ ...a.curve, rings: a.read_at.map((step) => [step, `${a.concept}: the verdict reads ${percent(a.value)} at step ${steps(step)}`]) }] })),
    references: [{ title: "random word", value: page.random }],
    low: 0,
    high: Math.min(1, Math.ceil(Math.max(highest, page.random) * 10) / 10),
  });
  const choice = document.querySelector("[name=convention]:checked")?.value ?? "own";
  const redraw = lineChart(document.getElementById("curve-chart"), "Agreement over training", agreements(choice));
  for (const choice of document.getElementsByName("convention")) {
    choice.addEventListener("change", () => redraw(agreements(choice.value)));
  }
  lineChart(document.getElementById("entropy-chart"), "Normalised entropy of attention over training", {
    series: [{ label: "spread", colour: 0, lines: [page.entropy] }], low: 0, high: 1,
  });
  if (page.special_share) {
    lineChart(document.getElementById("special-chart"), "Share of attention on special tokens over training", {
      series: [{ label: "special", colour: 0, lines: [page.special_share] }], low: 0, high: 1,
    });
  }
  if (page.bleu) {
    const most = Math.max(...page.bleu.flatMap((m) => m.values));
    lineChart(document.getElementById("bleu-chart"), "BLEU of each model over training", {
      series: byKind(page.bleu), low: 0, high: Math.max(0.1, Math.ceil(most * 10) / 10),
      format: (value) => (100 * value).toFixed(1),
    });
  }
  if (page.alignment) {
    lineChart(document.getElementById("alignment-chart"), "Alignment error rate over training; the text above has the numbers", {
      series: [{ label: "attention", colour: 0, lines: [page.alignment.curve], ends: page.alignment.ends }],
      references: page.alignment.references, low: 0, high: 1,
    });
  }
}
