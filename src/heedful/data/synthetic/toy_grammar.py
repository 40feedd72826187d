"""Grammar of the toy language: German and English sentences generated together, with their word alignment.

A link is sure unless one of its words is there for grammar alone (the "does" of "does not sleep"): then it is possible.
What makes it like German: three genders and cases, weak nouns, adjective endings after each kind of article, "kein",
contractions (im, ins), verb second and inversion, verb last in subordinate and relative clauses, separable verbs, the
perfect, modals. First words are not capitalised, so that each word has one form; nouns and "I" are.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from heedful.data.parallel import Alignment
from heedful.data.synthetic.toy_phrases import (
    DEFINITE,
    Both,
    Case,
    Noun,
    Phrase,
    Phrases,
    Token,
    Tokens,
    Verb,
    be,
    english_verb,
    german_verb,
)

Order = Literal["main", "inverted", "question", "final"]


class SyntheticPair(NamedTuple):
    """A sentence, its translation, and the links between the positions of their words."""

    source: str
    target: str
    alignment: Alignment


def sentence_pairs(seed: int = 0) -> Iterator[SyntheticPair]:
    """Endless sentence pairs; the same ones for the same seed.

    >>> next(sentence_pairs(seed=2)).source
    'dieser König will heute in jeder Schule weglaufen .'
    """
    rng = random.Random(f"toy-de-en {seed}")
    while True:
        yield _Sentence(rng).write()


# How often each kind of subject and object is chosen.
_FRAMES = {
    "animate": 10,
    "person": 8,
    "animate animate": 10,
    "person animate": 7,
    "person person": 9,
    "person place": 4,
    "animal animal": 3,
    "person object": 16,
    "person clothing": 6,
    "animate food": 5,
    "person food": 8,
    "person dative": 7,
    "person gift": 8,
    "animate goal": 6,
    "person preposition": 8,
}
_WITHIN = {"animate": ("person", "animal"), "object": ("thing", "clothing"), "gift": (), "dative": ()}


@dataclass
class _Parts:
    """The parts of a clause besides subject and verb."""

    objects: list[Phrase] = field(default_factory=list)
    places: list[Phrase] = field(default_factory=list)
    when: Both = ([], [])
    often: Both = ([], [])
    how: Both = ([], [])


class _Sentence(Phrases):
    """Writes one sentence pair."""

    def write(self) -> SyntheticPair:
        kind = self.rng.choices(("plain", "copula", "that", "two", "there", "question"), (50, 10, 11, 15, 5, 9))[0]
        mark = self.link(*("??" if kind == "question" else ".."))
        if kind == "plain":
            german, english = self.clause("main", relative=self.rng.random() < 0.2)
        elif kind == "question":
            german, english = self.inner("question")
        elif kind == "copula":
            german, english = self.copula("main")
        else:
            german, english = {"that": self.that_clause, "two": self.two_clauses, "there": self.there_is}[kind]()
        return _finish(german + mark[0], english + mark[1])

    def clause(
        self,
        order: Order,
        *,
        relative: bool = False,
        subject: Phrase | None = None,
        moved: Phrase | None = None,
        kind: str = "",
    ) -> Both:
        """A clause. In a relative one the pronoun, of that kind, is `subject`, or the object `moved` to the front."""
        rng = self.rng
        frame = self.frame(kind if subject else "", kind if moved else "")
        negated, tense = rng.random() < 0.18, rng.choices(("present", "perfect", "modal"), (5, 3, 2))[0]
        if subject is None:
            subject = self.subject(frame[0], relative)
        verb, parts = self.predicate(frame, subject, negated, moved is not None)
        self.adverb(parts, "perfect" if tense == "perfect" else "present", frame[1] in ("", "goal"), negated)
        kein = next((p.negation for p in parts.objects if p.negation is not None), None)
        ideas = next(self.ideas), next(self.ideas), next(self.ideas) if kein is None else kein
        modal = rng.choice([m for m in ("können", "müssen", "wollen", "dürfen") if not (negated and m == "müssen")])
        fronted = order == "main" and bool(parts.when[0]) and rng.random() < 0.5

        verb_form = german_verb(verb, tense, modal, subject.person, subject.number, order == "final")
        finite = [Token(verb_form.finite, ideas[tense == "modal"])]
        tail = [Token(verb_form.tail, ideas[0])] if verb_form.tail else []
        middle = _middle(parts, [Token("nicht", ideas[2])] if negated and kein is None else [], fronted)
        first = parts.when[0] if fronted else moved.german if moved else []
        if order == "final":
            german = first + subject.german + middle + tail + finite
        elif order == "main" and not fronted:
            german = subject.german + finite + middle + tail
        else:
            german = first + finite + subject.german + middle + tail

        group = english_verb(verb, tense, modal, subject.person, subject.number, negated, order == "question")
        helper, main = ([Token(w, ideas[i], sure) for w, i, sure in part] for part in (group.helper, group.main))
        first = parts.when[1] if fronted else moved.english if moved else helper[:1] if order == "question" else []
        helper = helper[1:] if order == "question" else helper
        rest = parts.how[1] + [t for place in parts.places for t in place.english] + ([] if fronted else parts.when[1])
        objects = _with_objects(main, verb, ideas[0], parts.objects)
        return german, first + subject.english + helper + parts.often[1] + objects + rest

    def frame(self, subject: str, thing: str) -> tuple[str, str]:
        """A kind of subject and of object; where one is given, it must be of that kind."""
        fits = {}
        for frame, weight in _FRAMES.items():
            s, _, o = frame.partition(" ")
            if (not subject or subject in _WITHIN.get(s, (s,))) and (not thing or thing in _WITHIN.get(o, (o,))):
                fits[s, o] = weight
        return self.rng.choices(list(fits), list(fits.values()))[0]

    def subject(self, kind: str, relative: bool) -> Phrase:
        if relative:
            return self.with_relative(self.pick(kind))
        return self.someone(kind, "nom", pronouns=kind == "person")

    def predicate(self, frame: tuple[str, str], subject: Phrase, negated: bool, moved: bool) -> tuple[Verb, _Parts]:
        """A verb, its objects (unless the object has moved away) and perhaps a place."""
        parts, kind = _Parts(), frame[1]
        if kind == "preposition":
            verb, german, governed, english, about = self.rng.choice(self.words.prepositional)
            noun = self.noun(self.pick(about), "acc" if governed == "acc" else "dat")
            parts.places.append(self.prepositional(german, english, noun))
            return verb, parts
        verb = self.rng.choice(self.words.verbs[" ".join(frame).strip()])
        avoid = subject.person if subject.pronoun else 0
        if kind == "goal":
            parts.places.append(self.prepositional("in", "into", self.noun(self.pick("place"), "acc")))
        elif kind == "gift":
            parts.objects.append(self.someone("person", "dat", avoid=avoid))
            parts.objects.append(self.noun(self.pick("object"), "acc", negated=negated))
        elif kind and not moved:
            case: Case = "dat" if kind == "dative" else "acc"
            whom, pronouns = "person" if kind == "dative" else kind, kind in ("animate", "person", "dative")
            parts.objects.append(self.someone(whom, case, pronouns=pronouns, negated=negated, avoid=avoid))
        if (not kind or frame[0] == "animate") and kind != "goal" and not negated and self.rng.random() < 0.3:
            parts.places.append(self.place())
        return verb, parts

    def adverb(self, parts: _Parts, tense: str, motion: bool, negated: bool) -> None:
        chance = self.rng.random()
        if chance < 0.2:
            parts.when = self.link(*self.rng.choice(self.words.when[tense]))
        elif chance < 0.35 and not negated:
            parts.often = self.link(*self.rng.choice(self.words.phrases["often"]))
        elif chance < 0.5 and motion and not negated:
            parts.how = self.link(*self.rng.choice(self.words.phrases["how"]))

    def with_relative(self, noun: Noun) -> Phrase:
        """A noun with a relative clause between commas: it is the subject there, or the object."""
        phrase = self.noun(noun, "nom")
        column = 3 if phrase.number == "pl" else "mfn".index(noun.gender)
        comma = Token(",", next(self.ideas))
        as_subject = noun.kind in ("person", "animal") and self.rng.random() < 0.6
        english_pronoun = "who" if noun.kind == "person" and as_subject else "that"
        pronoun = Phrase(
            *self.link(DEFINITE["nom" if as_subject else "acc"][column], english_pronoun), 3, phrase.number
        )
        if as_subject:
            german, english = self.clause("final", subject=pronoun, kind=noun.kind)
        else:
            german, english = self.clause("final", moved=pronoun, kind=noun.kind)
        return phrase._replace(german=[*phrase.german, comma, *german, comma], english=phrase.english + english)

    def copula(self, order: Order) -> Both:
        """The man is (not) tired."""
        kind = self.rng.choice(("person", "person", "animal", "thing", "clothing", "place"))
        relative = order == "main" and self.rng.random() < 0.2
        subject = (
            self.with_relative(self.pick(kind)) if relative else self.someone(kind, "nom", pronouns=kind == "person")
        )
        verb = self.link(*be(self.rng.choice(("present", "past")), subject.person, subject.number))
        degree = self.rng.choice((("", ""), ("", ""), ("sehr", "very"), ("nicht", "not"), ("zu", "too")))
        how, (form, _, english) = self.link(*degree), self.rng.choice(self.words.adjectives[kind])
        quality = self.link(form, english)
        german = {
            "main": subject.german + verb[0] + how[0] + quality[0],
            "final": subject.german + how[0] + quality[0] + verb[0],
        }.get(order, verb[0] + subject.german + how[0] + quality[0])
        if order == "question":
            return german, verb[1] + subject.english + how[1] + quality[1]
        return german, subject.english + verb[1] + how[1] + quality[1]

    def inner(self, order: Order) -> Both:
        return self.copula(order) if self.rng.random() < 0.2 else self.clause(order)

    def that_clause(self) -> Both:
        """The man says that …"""
        subject, verb = self.someone("person", "nom"), self.rng.choice(self.words.verbs["person that"])
        tense, idea = self.rng.choice(("present", "perfect")), next(self.ideas)
        verb_form = german_verb(verb, tense, "", subject.person, subject.number, False)
        group = english_verb(verb, tense, "", subject.person, subject.number, False, False)
        that, comma = self.link("dass", "that"), Token(",", next(self.ideas))
        german, english = self.inner("final")
        spoken = [Token(w, idea) for w in (verb_form.finite, verb_form.tail) if w]
        return (
            [*subject.german, *spoken, comma, *that[0], *german],
            [*subject.english, *(Token(w, idea) for w, _, _ in group.main), *that[1], *english],
        )

    def two_clauses(self) -> Both:
        """A main clause and a subordinate one, in either order; English has a comma only after a subordinate one."""
        conjunction, comma = self.link(*self.rng.choice(self.words.phrases["conjunctions"])), self.link(",", ",")
        if self.rng.random() < 0.35:
            first, second = self.inner("final"), self.inner("inverted")
            return conjunction[0] + first[0] + comma[0] + second[0], conjunction[1] + first[1] + comma[1] + second[1]
        first, second = self.clause("main"), self.inner("final")
        return first[0] + comma[0] + conjunction[0] + second[0], first[1] + conjunction[1] + second[1]

    def there_is(self) -> Both:
        """Im Garten gibt es einen Hund: the German object is the English subject."""
        place, kind = self.place(), self.rng.choice(("animal", "thing", "person"))
        thing = self.noun(self.pick(kind), "acc", article="a")
        there, gives = self.link("es", "there"), self.link("gibt", "are" if thing.number == "pl" else "is")
        english = there[1] + gives[1] + thing.english + place.english
        if self.rng.random() < 0.5:
            return place.german + gives[0] + there[0] + thing.german, english
        return there[0] + gives[0] + thing.german + place.german, english


def _middle(parts: _Parts, nicht: Tokens, fronted: bool) -> Tokens:
    """Between the German verb and its end: pronouns, adverbs, nouns, "nicht", places."""
    pronouns = [t for p in parts.objects if p.pronoun for t in p.german]
    nouns = [t for p in parts.objects if not p.pronoun for t in p.german]
    adverbs = ([] if fronted else parts.when[0]) + parts.often[0] + parts.how[0]
    return pronouns + adverbs + nouns + nicht + [t for p in parts.places for t in p.german]


def _with_objects(main: Tokens, verb: Verb, idea: int, objects: list[Phrase]) -> Tokens:
    """The English verb and its objects: picks the book up, but picks him up and looks for him."""
    particle = [Token(w, idea) for w in (verb.particle,) if w]
    preposition = [Token(w, idea) for w in (verb.preposition,) if w]
    pronoun = bool(objects) and objects[0].pronoun
    rest = [t for p in objects for t in p.english]
    return main + preposition + (rest + particle if pronoun else particle + rest)


def _finish(german: Tokens, english: Tokens) -> SyntheticPair:
    """Drop the commas that another mark makes needless, and link the positions whose words share an idea."""
    kept = [
        t
        for t, after in zip(german, [*german[1:], None], strict=True)
        if not (t.word == "," and after and after.word in ",.?")
    ]
    links = [(s, t, a.sure and b.sure) for s, a in enumerate(kept) for t, b in enumerate(english) if a.idea == b.idea]
    alignment = Alignment.of([(s, t) for s, t, sure in links if sure], [(s, t) for s, t, _ in links])
    return SyntheticPair(" ".join(t.word for t in kept), " ".join(t.word for t in english), alignment)
