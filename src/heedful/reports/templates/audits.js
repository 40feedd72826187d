// Audits side by side: every picture, every table and all scores as files. All else stands in the page already.

const page = JSON.parse(document.getElementById("payload").textContent);
tables.scores = () => page.scores;
offerSaving();
document.body.dataset.ready = "yes";
