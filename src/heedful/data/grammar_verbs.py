"""The verbs of the toy language conjugated: person, number, tense, modals; where "do" stands in English."""

from typing import NamedTuple

from heedful.data.grammar_words import Verb

_IRREGULAR = {
    "haben": ("habe", "hast", "hat"),
    "sein": ("bin", "bist", "ist"),
    "wissen": ("weiß", "weißt", "weiß"),
    "können": ("kann", "kannst", "kann"),
    "müssen": ("muss", "musst", "muss"),
    "wollen": ("will", "willst", "will"),
    "dürfen": ("darf", "darfst", "darf"),
}
_MODALS = {"können": "can", "müssen": "must", "dürfen": "may"}


class German(NamedTuple):
    """The finite verb, and what stands at the end of the clause."""

    finite: str
    tail: str


class English(NamedTuple):
    """Words with the idea they express (0 the verb, 1 the modal, 2 the negation) and whether their links are sure.

    `helper` (does not, can) stands before an adverb, its first word before the subject of a question.
    """

    helper: list[tuple[str, int, bool]]
    main: list[tuple[str, int, bool]]


def german_verb(verb: Verb, tense: str, modal: str, person: int, number: str, final: bool) -> German:
    """The German verb; in a clause with the verb at the end, a separable prefix stays on it.

    >>> from heedful.data.grammar_words import verb
    >>> german_verb(verb("auf|machen macht gemacht = open opened"), "present", "", 2, "sg", False)
    German(finite='machst', tail='auf')
    >>> german_verb(verb("auf|machen macht gemacht = open opened"), "present", "", 2, "sg", True)
    German(finite='aufmachst', tail='')
    """
    if tense == "perfect":
        return German(_present(verb.auxiliary, "", person, number), verb.prefix + verb.participle)
    if tense == "modal":
        return German(_present(modal, "", person, number), verb.prefix + verb.infinitive)
    finite = _present(verb.infinitive, verb.third, person, number)
    return German(verb.prefix + finite, "") if final else German(finite, verb.prefix)


def english_verb(
    verb: Verb, tense: str, modal: str, person: int, number: str, negated: bool, question: bool
) -> English:
    """The English verb: past for the German perfect, "do" where English needs it.

    >>> from heedful.data.grammar_words import verb
    >>> english_verb(verb("sehen sieht gesehen = see saw"), "perfect", "", 3, "sg", True, False)
    English(helper=[('did', 0, False), ('not', 2, True)], main=[('see', 0, True)])
    """
    third = person == 3 and number == "sg"
    no = [("not", 2, True)] if negated else []
    if tense == "modal" and modal != "wollen":
        return English([(_MODALS[modal], 1, True), *no], [(verb.english, 0, True)])
    want = tense == "modal"
    base, idea = ("want", 1) if want else (verb.english, 0)
    rest = [("to", 1, False), (verb.english, 0, True)] if want else []
    if negated or question:
        do = "did" if tense == "perfect" else "does" if third else "do"
        return English([(do, idea, False), *no], [(base, idea, True), *rest])
    form = verb.past if tense == "perfect" else _third(base) if third else base
    return English([], [(form, idea, True), *rest])


def be(tense: str, person: int, number: str) -> tuple[str, str]:
    """sein and be.

    >>> be("past", 1, "sg"), be("present", 3, "pl")
    (('war', 'was'), ('sind', 'are'))
    """
    if number == "pl":
        return ("sind", "are") if tense == "present" else ("waren", "were")
    if tense == "present":
        return (("bin", "am"), ("bist", "are"), ("ist", "is"))[person - 1]
    return (("war", "was"), ("warst", "were"), ("war", "was"))[person - 1]


def _present(infinitive: str, third: str, person: int, number: str) -> str:
    if number == "pl":
        return "sind" if infinitive == "sein" else infinitive
    if infinitive in _IRREGULAR:
        return _IRREGULAR[infinitive][person - 1]
    if person == 1:
        return infinitive.removesuffix("n").removesuffix("e") + "e"
    if person == 3:
        return third
    stem = third if third.endswith("tt") else third.removesuffix("t")  # betritt has its t in the stem
    return third if stem.endswith(("s", "ß", "z")) else stem + "st"


def _third(base: str) -> str:
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"
