// The charts of several runs: a mark for each in the agreements, a colour for each over training.

function convention() {
  return document.querySelector("[name=convention]:checked")?.value ?? "own"; // followed trainings have no other
}

function drawAgreements(holder, width) {
  const chosen = page.agreements.filter((a) => a.convention === convention());
  const rows = [...new Set(chosen.map((a) => a.key))].map((key) => {
    const dots = chosen.filter((a) => a.key === key).map((a) => ({ ...a, mark: a.run }));
    return { label: dots[0].symbol, title: dots[0].concept, dots };
  });
  const title = `Agreements${document.querySelector("[name=convention]") ? `, ${convention()},` : ""} of ${page.runs.length} runs with their intervals; the table below has the numbers`;
  dotsAndWhiskers(holder, width, { title, unit: `% of ${TERMS.rows} that agree`, series: page.titles, rows, chance: page.random, control: page.control });
}

function drawCurves() {
  const reach = (curves) => curves.flatMap((c) => c.values).filter((v) => v !== null);
  const up = (values) => Math.min(1, Math.ceil(Math.max(...values) * 10) / 10);
  const accuracies = reach(page.accuracy);
  if (accuracies.length) lineChart(document.getElementById("accuracy-chart"), `Validation ${TERMS.accuracy} of each run over training`, {
    series: byKind(page.accuracy), low: Math.floor(Math.min(...accuracies) * 10) / 10, high: up(accuracies),
  });
  lineChart(document.getElementById("entropy-chart"), "Normalised entropy of attention over training", {
    series: page.titles.map((label, i) => ({ label, colour: i, lines: [page.entropies[i]] })), low: 0, high: 1,
  });
  if (page.special_shares) {
    lineChart(document.getElementById("special-chart"), "Share of attention on special tokens over training", {
      series: page.titles.map((label, i) => ({ label, colour: i, lines: [page.special_shares[i]] })), low: 0, high: 1,
    });
  }
  if (page.bleu) {
    lineChart(document.getElementById("bleu-chart"), "BLEU of each run over training", {
      series: byKind(page.bleu), low: 0, high: Math.max(0.1, up(reach(page.bleu))), format: (value) => (100 * value).toFixed(1),
    });
  }
  const which = document.getElementById("which");
  for (const key of new Set(page.agreements.map((a) => a.key))) {
    which.append(element("option", { value: key, text: page.agreements.find((a) => a.key === key).concept }));
  }
  const curves = () => {
    const chosen = page.agreements.filter((a) => a.key === which.value && a.convention === convention());
    return {
      series: chosen.map((a) => ({ label: page.titles[a.run], colour: a.run, lines: [a.curve] })),
      references: page.random === null ? [] : [{ title: "random word", value: page.random }],
      low: 0, high: up([...chosen.flatMap((a) => a.curve.values), page.random ?? 0.1]),
    };
  };
  const redraw = lineChart(document.getElementById("curve-chart"), "Agreement of each run over training", curves());
  which.addEventListener("change", () => redraw(curves()));
  for (const choice of document.getElementsByName("convention")) {
    choice.addEventListener("change", () => {
      const chart = document.getElementById("agreement-chart");
      drawAgreements(chart, Math.round(chart.clientWidth));
      redraw(curves());
    });
  }
}
