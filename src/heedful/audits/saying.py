"""What may be said to a reader of a heat-map of attention, and what may not: one sentence, drawn from the answers."""

from heedful.studies.result import Answer


def what_may_be_said(
    moves: Answer, agrees: Answer, trained: Answer, needs: Answer, another: Answer, layers: Answer
) -> str:
    """The sentence for the answers to the six questions of an audit, in their order.

    >>> what_may_be_said("yes", "yes", "yes", "yes", "no", "yes")
    'A reader of the heat-map may be told that the prediction rests on the words it marks; no quite different marks
    were found that go with the same prediction.'
    """
    if (moves, agrees, needs, another) == ("yes", "yes", "yes", "no"):
        may = (
            "that the prediction rests on the words it marks; no quite different marks were found that go with the "
            "same prediction"
        )
    elif agrees == needs == "yes":
        may = "that the words it marks matter to the prediction more often than chance"
    elif "yes" in (agrees, needs):
        may = "that by one measure of two the words it marks matter to the prediction more often than chance"
    elif moves == "yes":
        may = "that the prediction depends on these weights, but not that it depends on the words they lie on"
    else:
        may = "where this model's attention lies, and nothing about why it predicts what it does"
    wrong = {
        "that these weights are the reason, as quite other ones give the same prediction": another == "yes",
        "that attention decides, as the prediction hardly moves when it is shuffled": moves == "no",
        "that marked words are the important ones": agrees == "no",
        "that the model needs the words marked": needs == "no",
        "that training put the marks there, as a random model's agree as well": trained == "no",
        "that any layer shows the same": layers == "no",
    }
    no = ", nor ".join(text for text, holds in wrong.items() if holds)
    unanswered = (moves, agrees, trained, needs, another, layers).count("unclear")
    may_not = f"; they may not be told {no}" if no else ""
    rest = f"; {unanswered} of 6 questions stay open" if unanswered else ""
    return f"A reader of the heat-map may be told {may}{may_not}{rest}."
