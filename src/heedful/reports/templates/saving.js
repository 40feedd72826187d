// Pages that stand there already: every picture, every table and, where they are embedded, all scores as files.

const page = JSON.parse(document.getElementById("payload").textContent);
tables.scores = () => page.scores;
offerSaving();
document.body.dataset.ready = "yes";
