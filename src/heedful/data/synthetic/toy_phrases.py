"""Words, noun phrases and verb forms of the toy language, in German and English at once.

Every word carries the number of the idea it expresses; words of one idea are linked. The words are in `toy_words.toml`.
"""

import functools
import itertools
import random
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal, NamedTuple

Case = Literal["nom", "acc", "dat"]
CASES: tuple[Case, ...] = ("nom", "acc", "dat")


class Noun(NamedTuple):
    """A noun of both languages; `kind` says what it can do and what can be done to it."""

    kind: str
    gender: str
    weak: bool
    german: tuple[str, str]
    english: tuple[str, str]


class Adjective(NamedTuple):
    """An adjective of both languages; the German `stem` takes endings."""

    german: str
    stem: str
    english: str


class Verb(NamedTuple):
    """A verb of both languages; the German `prefix` is separable; English pronouns stand before the `particle`."""

    prefix: str
    infinitive: str
    third: str
    participle: str
    auxiliary: str
    english: str
    past: str
    particle: str
    preposition: str


class Pronoun(NamedTuple):
    """A personal pronoun: German in three cases, English as subject and as object."""

    person: int
    number: str
    german: tuple[str, ...]
    english: tuple[str, ...]


Translation = tuple[str, str]  # German, English


@dataclass(frozen=True)
class ToyLexicon:
    """The words of the toy language: nouns and adjectives by kind, verbs by the kinds of their subject and object."""

    nouns: Mapping[str, tuple[Noun, ...]]
    adjectives: Mapping[str, tuple[Adjective, ...]]
    verbs: Mapping[str, tuple[Verb, ...]]
    prepositional: tuple[tuple[Verb, str, str, str, str], ...]  # verb, preposition, case, preposition, kind of object
    pronouns: tuple[Pronoun, ...]
    colours: tuple[str, ...]
    phrases: Mapping[str, tuple[Translation, ...]]  # those that are not inflected, by their use
    when: Mapping[str, tuple[Translation, ...]]  # by tense


_USES = ("possessives", "numbers", "places", "conjunctions", "often", "how")


@functools.cache
def lexicon() -> ToyLexicon:
    """Read `toy_words.toml`.

    >>> lexicon().nouns["animal"][0].english
    ('dog', 'dogs')
    """
    words = tomllib.loads(resources.files(__package__).joinpath("toy_words.toml").read_text("utf-8"))
    nouns = {kind: tuple(_noun(kind, entry) for entry in entries) for kind, entries in words["nouns"].items()}
    nouns["animate"] = nouns["person"] + nouns["animal"]
    nouns["object"] = nouns["thing"] + nouns["clothing"]
    return ToyLexicon(
        nouns=nouns,
        adjectives={kind: tuple(map(_adjective, entries)) for kind, entries in words["adjectives"].items()},
        verbs={kinds: tuple(map(read_verb, entries)) for kinds, entries in words["verbs"].items()},
        prepositional=tuple((read_verb(entry), *rest) for entry, *rest in words["prepositional"]),
        pronouns=tuple(map(_pronoun, words["pronouns"])),
        colours=tuple(words["colours"]),
        phrases={use: _translations(words[use]) for use in _USES},
        when={tense: _translations(entries) for tense, entries in words["when"].items()},
    )


def read_verb(entry: str) -> Verb:
    """A verb from its entry in `toy_words.toml`.

    >>> read_verb("auf|!wachen wacht gewacht = wake_up woke").prefix
    'auf'
    """
    german, english = (side.split() for side in entry.split("="))
    prefix, _, infinitive = german[0].rpartition("|")
    base, _, particle = english[0].partition("_")
    base, _, preposition = base.partition("~")
    auxiliary = "sein" if infinitive.startswith("!") else "haben"
    infinitive = infinitive.lstrip("!")
    return Verb(prefix, infinitive, german[1], german[2], auxiliary, base, english[1], particle, preposition)


def _noun(kind: str, entry: str) -> Noun:
    german, english = (side.split() for side in entry.split("="))
    return Noun(kind, german[0][0], german[0].endswith("*"), (german[1], german[2]), (english[0], english[1]))


def _adjective(entry: str) -> Adjective:
    german, english = entry.split("=")
    return Adjective(german.split("(")[0], german.partition("(")[2].rstrip(")") or german, english)


def _pronoun(entry: str) -> Pronoun:
    german, english = (side.split() for side in entry.split("="))
    return Pronoun(int(german[0]), german[1], tuple(german[2:]), tuple(english))


def _translations(entries: Iterable[str]) -> tuple[Translation, ...]:
    pairs = (entry.split(" = ") for entry in entries)
    return tuple((german, english) for german, english in pairs)


class Token(NamedTuple):
    """A word, the idea it expresses, and whether its links are sure."""

    word: str
    idea: int
    sure: bool = True


Tokens = list[Token]
Both = tuple[Tokens, Tokens]  # German, English


class Phrase(NamedTuple):
    """One phrase in both languages."""

    german: Tokens
    english: Tokens
    person: int = 3
    number: str = "sg"
    pronoun: bool = False
    negation: int | None = None  # the idea of "kein", which the English "not" shares


# Masculine, feminine, neuter, plural.
DEFINITE = {
    "nom": ("der", "die", "das", "die"),
    "acc": ("den", "die", "das", "die"),
    "dat": ("dem", "der", "dem", "den"),
}
_EIN = {"nom": ("", "e", "", "e"), "acc": ("en", "e", "", "e"), "dat": ("em", "er", "em", "en")}
_DIES = {"nom": ("er", "e", "es", "e"), "acc": ("en", "e", "es", "e"), "dat": ("em", "er", "em", "en")}
_WEAK = {"nom": ("e", "e", "e", "en"), "acc": ("en", "e", "e", "en"), "dat": ("en", "en", "en", "en")}
_MIXED = {"nom": ("er", "e", "es", "en"), "acc": ("en", "e", "es", "en"), "dat": ("en", "en", "en", "en")}
_STRONG = {"nom": "e", "acc": "e", "dat": "en"}  # plural without an article
_SHORT = {"in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans", "von dem": "vom"}


@dataclass
class Phrases:
    """Makes phrases: hands out ideas, and remembers which nouns have been used."""

    rng: random.Random
    ideas: Iterator[int] = field(default_factory=itertools.count)
    used: set[Noun] = field(default_factory=set)
    words: ToyLexicon = field(default_factory=lexicon)

    def link(self, german: str, english: str) -> Both:
        """Words that translate one another, all with all.

        >>> Phrases(random.Random(0)).link("neben", "next to")[1]
        [Token(word='next', idea=0, sure=True), Token(word='to', idea=0, sure=True)]
        """
        idea = next(self.ideas)
        return [Token(w, idea) for w in german.split()], [Token(w, idea) for w in english.split()]

    def pick(self, kind: str) -> Noun:
        """A noun of that kind that the sentence does not have yet."""
        noun = self.rng.choice([n for n in self.words.nouns[kind] if n not in self.used])
        self.used.add(noun)
        return noun

    def someone(self, kind: str, case: Case, *, pronouns: bool = True, negated: bool = False, avoid: int = 0) -> Phrase:
        """A pronoun (not of the person to avoid) or a noun phrase of that kind."""
        if pronouns and self.rng.random() < 0.25:
            pronoun = self.rng.choice([p for p in self.words.pronouns if p.person != avoid])
            german, english = pronoun.german[CASES.index(case)], pronoun.english[case != "nom"]
            return Phrase(*self.link(german, english), pronoun.person, pronoun.number, True)
        return self.noun(self.pick(kind), case, negated=negated)

    def noun(self, noun: Noun, case: Case, *, negated: bool = False, article: str = "") -> Phrase:
        """An article, adjectives, the noun, and now and then what someone wears."""
        plural = self.rng.random() < 0.3
        column = 3 if plural else "mfn".index(noun.gender)
        article = article or self._article(plural, negated)
        german, english = self._determiner(article, case, column)
        idea = next(self.ideas)
        parts: Both = [], []
        for stem, adjective in self._adjectives(noun.kind):
            _append(parts, self.link(stem + _ending(article, case, column), adjective))
        _append(parts, self.link(_inflected(noun, case, plural), noun.english[plural]))
        if english == "a" and parts[1][0].word[0] in "aeiou":
            english = "an"
        if noun.kind == "person" and self.rng.random() < 0.06:
            worn = self.prepositional("mit", "with", self.noun(self.pick("clothing"), "dat", article="a"))
            _append(parts, (worn.german, worn.english))
        return Phrase(
            [Token(w, idea) for w in german.split()] + parts[0],
            [Token(w, idea) for w in english.split()] + parts[1],
            number="pl" if plural else "sg",
            negation=idea if article == "no" else None,
        )

    def prepositional(self, german: str, english: str, phrase: Phrase) -> Phrase:
        """A preposition before a noun phrase; "in dem" becomes "im", which then says what "in the" says."""
        linked = self.link(german, english)
        short = _SHORT.get(f"{german} {phrase.german[0].word}") if phrase.english[0].word == "the" else None
        if short is None:
            return Phrase(linked[0] + phrase.german, linked[1] + phrase.english)
        idea = linked[0][0].idea
        article = phrase.english[0]._replace(idea=idea)
        return Phrase([Token(short, idea), *phrase.german[1:]], [*linked[1], article, *phrase.english[1:]])

    def place(self) -> Phrase:
        """Where something happens."""
        german, english = self.rng.choices(self.words.phrases["places"], (6, 1, 1, 1))[0]
        return self.prepositional(german, english, self.noun(self.pick("place"), "dat"))

    def _article(self, plural: bool, negated: bool) -> str:
        if negated:
            return self.rng.choices(("the", "possessive", "this", "no"), (35, 15, 10, 40))[0]
        article = self.rng.choices(("the", "a", "possessive", "this", "number"), (45, 25, 13, 9, 8))[0]
        return article if plural or article != "number" else "every"

    def _determiner(self, article: str, case: Case, column: int) -> tuple[str, str]:
        plural = column == 3
        if article == "the":
            return DEFINITE[case][column], "the"
        if article == "a":
            return ("", "") if plural else ("ein" + _EIN[case][column], "a")
        if article == "no":
            return "kein" + _EIN[case][column], "any" if plural else "a"
        if article == "this":
            return "dies" + _DIES[case][column], "these" if plural else "this"
        if article == "every":
            return "jed" + _DIES[case][column], "every"
        if article == "number":
            return self.rng.choice(self.words.phrases["numbers"])
        german, english = self.rng.choice(self.words.phrases["possessives"])
        return german + _EIN[case][column], english

    def _adjectives(self, kind: str) -> list[tuple[str, str]]:
        count = self.rng.choices((0, 1, 2), (60, 36, 4))[0]
        chosen = {
            self._rank(english): (stem, english)
            for _, stem, english in self.rng.sample(self.words.adjectives[kind], count)
        }
        return [chosen[rank] for rank in sorted(chosen)]

    def _rank(self, english: str) -> int:
        """The place of an adjective among several: size, quality, age, colour; there is at most one of each."""
        if english in ("big", "small"):
            return 0
        return 2 if english in ("old", "young", "new") else 3 if english in self.words.colours else 1


def _append(parts: Both, more: Both) -> None:
    parts[0].extend(more[0])
    parts[1].extend(more[1])


def _ending(article: str, case: Case, column: int) -> str:
    """The ending of an adjective, which depends on how much the article already shows."""
    if article in ("the", "this", "every"):
        return _WEAK[case][column]
    if column == 3 and article in ("a", "number"):
        return _STRONG[case]
    return _MIXED[case][column]


def _inflected(noun: Noun, case: Case, plural: bool) -> str:
    singular, several = noun.german
    if plural:
        return several + "n" if case == "dat" and several[-1] not in "ns" else several
    return several if noun.weak and case != "nom" else singular


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

    >>> german_verb(read_verb("auf|machen macht gemacht = open opened"), "present", "", 2, "sg", False)
    German(finite='machst', tail='auf')
    >>> german_verb(read_verb("auf|machen macht gemacht = open opened"), "present", "", 2, "sg", True)
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

    >>> english_verb(read_verb("sehen sieht gesehen = see saw"), "perfect", "", 3, "sg", True, False)
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
