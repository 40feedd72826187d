"""Figure 2, A.7 and A.9 of snell2021: agreement through training, and between seeds."""

import numpy as np

from heedful.measure.agreement import agreement
from heedful.measure.trajectory import contextualised_agreement
from heedful.measure.uncertainty import Estimate, mean_over_seeds
from heedful.papers.experiment import Lab
from heedful.papers.finding import Cell, Figure, Finding, Line, Mark, Panel, Row, Table, Value
from heedful.papers.snell2021.agreements import above_chance, measured
from heedful.papers.snell2021.studies import corpora, study_of
from heedful.studies.analysis import Recordings, Rows

SMS = {"smoke": "polarity"}  # what stands in for sms-spam where nothing may be downloaded
LONGEST = {"smoke": "polarity"}  # what stands in for sst, the study trained long enough for the fall of A.7


def find_figure2(lab: Lab) -> Finding:
    """Figure 2: how ξ is read off: the step where another seed's attention agrees more, and how well it did there."""
    data = LONGEST.get(lab.budget, "sst")
    recordings = Recordings(lab.study(study_of(data, lab.budget)))
    A, B = recordings.seeds[0], recordings.other(recordings.seeds[0])
    alpha = recordings.quantity("standard", A, "alpha", recordings.best_step(A))
    steps = recordings.steps("standard", B)
    climb = [float(agreement(alpha, recordings.quantity("standard", B, "alpha", step)).mean()) for step in steps]
    performance = [float(recordings.correct("standard", B, step).mean()) for step in steps]
    target = max(
        float(agreement(alpha, recordings.quantity("uniform", B, "beta_logit", step)).mean())
        for step in recordings.steps("uniform", B)
    )
    xi = contextualised_agreement(target, list(steps), climb, performance)
    at, x = steps.index(xi.step), tuple(float(step) for step in steps)
    star = "" if xi.reached else " (never exceeded)"
    panels = (
        Panel(
            "A(α, α̂(τ)) of another seed",
            (Line("A(α, α̂(τ))", x, tuple(climb)),),
            (Mark(float(xi.step), climb[at], f"τ₀ = {xi.step}{star}", guides=True),),
            x_label="training step τ",
            y_label="agreement",
            y_percent=True,
            reference=target,
        ),
        Panel(
            "its performance",
            (Line("p̂(τ)", x, tuple(performance)),),
            (Mark(float(xi.step), xi.value, f"ξ = {xi.value:.1%}", guides=True),),
            x_label="training step τ",
            y_label="accuracy",
            y_percent=True,
        ),
    )
    caption = f"{data}, seeds {A} and {B}; the dotted line is A(α, β^uf) = {target:.1%}."
    return Finding(figures=(Figure("figure2", "Figure 2: how ξ is read off a curve", panels, caption),))


def find_rise_and_fall(lab: Lab) -> Finding:
    """A.7: A(α, β^uf(τ)) rises and then falls as the uniform twin trains on.

    The peak's step is chosen on one half of the texts and everything is read on the other: a maximum can only lie above
    the end it is compared with.
    """
    lines, values, rows = [], [], []
    for corpus in corpora(lab.budget, "classification"):
        if corpus.data is None:
            continue
        recordings = Recordings(lab.study(study_of(corpus.data, lab.budget)))
        steps = recordings.steps("uniform", recordings.seeds[0])
        tables = [_over_twin(recordings, A) for A in recordings.seeds]
        curve = np.mean([table.mean(axis=1) for table in tables], axis=0)
        lines.append(Line(corpus.row or corpus.data, tuple(float(s) for s in steps), tuple(curve.tolist())))
        rise, fall = (mean_over_seeds([_from_peak(table, end) for table in tables]) for end in (0, -1))
        values += [Value(f"rise, {corpus.data}", rise), Value(f"fall, {corpus.data}", fall)]
        peak = steps[int(np.argmax(curve))]
        cells = (Cell(text=f"{peak} of {steps[-1]}"), Cell(rise, unit="%"), Cell(fall, unit="%"))
        rows.append(Row(corpus.row or corpus.data, cells))
    longest = LONGEST.get(lab.budget, "sst")
    values += [Value("rise", _of(values, f"rise, {longest}")), Value("fall", _of(values, f"fall, {longest}"))]
    panel = Panel(
        "A(α, β^uf(τ)), cross", tuple(lines), x_label="step τ of the uniform twin", y_label="agreement", y_percent=True
    )
    columns = ("step of the peak", "peak above the start", "peak above the end")
    return Finding(
        (
            Table(
                "A.7 in numbers", columns, tuple(rows), "Peaks are chosen on half of the texts and read on the others."
            ),
        ),
        (Figure("a7", "A.7: rise, and fall where training goes on long enough", (panel,)),),
        tuple(values),
    )


def _over_twin(recordings: Recordings, A: int) -> Rows:
    """A(α, β^uf(τ)) of every text at every step of another seed's twin: (steps, texts)."""
    alpha = recordings.quantity("standard", A, "alpha", recordings.best_step(A))
    twin = recordings.other(A)
    steps = recordings.steps("uniform", twin)
    return np.stack([agreement(alpha, recordings.quantity("uniform", twin, "beta_logit", step)) for step in steps])


def _from_peak(table: Rows, end: int) -> float:
    """How far the peak lies above one end of the curve, chosen on one half of the texts and read on the other."""
    halves = table[:, ::2], table[:, 1::2]
    gaps = [b[np.argmax(a.mean(axis=1))].mean() - b[end].mean() for a, b in (halves, halves[::-1])]
    return float(np.mean(gaps))


def _of(values: list[Value], name: str) -> Estimate:
    return next(value.estimate for value in values if value.name == name)


def find_between_seeds(lab: Lab) -> Finding:
    """A.9: how far two seeds attend alike, on SMS spam and elsewhere."""
    sms = SMS.get(lab.budget, "sms-spam")
    rows, above = [], {}
    for corpus in corpora(lab.budget, "classification"):
        if corpus.data is None:
            continue
        seen = measured(lab, corpus.data).agreement("A(alpha,alpha_hat)", "cross")
        above[corpus.data] = above_chance(seen)
        cells = (Cell(seen.over_seeds, unit="%"), Cell(seen.shuffle, unit="%"), Cell(above[corpus.data], unit="%"))
        rows.append(Row(corpus.row or corpus.data, cells))
    others = float(np.mean([e.value for data, e in above.items() if data != sms]))
    one = above[sms]
    gap = Estimate(one.value - others, one.low - others, one.high - others, one.n)
    columns = ("A(α, α̂) between seeds", "matched shuffle", "above chance")
    return Finding(
        (Table("A.9: attention of one seed against another's", columns, tuple(rows)),),
        values=(
            Value("between seeds: sms above the others", gap),
            *(Value(f"between seeds, {d}", e) for d, e in above.items()),
        ),
    )
