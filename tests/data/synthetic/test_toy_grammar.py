import itertools
import random
import re

import pytest

from heedful.data.synthetic.toy_grammar import sentence_pairs
from heedful.data.synthetic.toy_phrases import Phrases, _ending, _inflected, english_verb, german_verb, lexicon

PAIRS = list(itertools.islice(sentence_pairs(seed=3), 3000))
WORDS = lexicon()
MAN, WOMAN, CHILD = WORDS.nouns["person"][:3]
BOY = next(noun for noun in WORDS.nouns["person"] if noun.german[0] == "Junge")
VERBS = {verb.prefix + verb.infinitive: verb for verbs in WORDS.verbs.values() for verb in verbs}


@pytest.mark.parametrize(
    ("article", "case", "noun", "plural", "expected"),
    [
        ("the", "nom", MAN, False, "der alte Mann"),
        ("the", "acc", MAN, False, "den alten Mann"),
        ("the", "dat", MAN, False, "dem alten Mann"),
        ("the", "dat", MAN, True, "den alten Männern"),
        ("a", "nom", MAN, False, "ein alter Mann"),
        ("a", "acc", MAN, False, "einen alten Mann"),
        ("a", "acc", WOMAN, False, "eine alte Frau"),
        ("a", "dat", WOMAN, False, "einer alten Frau"),
        ("a", "nom", CHILD, False, "ein altes Kind"),
        ("a", "dat", CHILD, False, "einem alten Kind"),
        ("a", "nom", MAN, True, "alte Männer"),
        ("a", "dat", CHILD, True, "alten Kindern"),
        ("a", "dat", WOMAN, True, "alten Frauen"),
        ("no", "acc", MAN, True, "keine alten Männer"),
        ("no", "dat", WOMAN, False, "keiner alten Frau"),
        ("this", "acc", CHILD, False, "dieses alte Kind"),
        ("this", "dat", WOMAN, True, "diesen alten Frauen"),
        ("every", "nom", BOY, False, "jeder alte Junge"),
        ("the", "acc", BOY, False, "den alten Jungen"),
        ("a", "dat", BOY, False, "einem alten Jungen"),
    ],
)
def test_noun_phrases_decline(article, case, noun, plural, expected):
    column = 3 if plural else "mfn".index(noun.gender)
    determiner = Phrases(random.Random(0))._determiner(article, case, column)[0]
    phrase = f"{determiner} alt{_ending(article, case, column)} {_inflected(noun, case, plural)}"
    assert phrase.strip() == expected


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("sehen", "sehe siehst sieht sehen"),
        ("essen", "esse isst isst essen"),
        ("tanzen", "tanze tanzt tanzt tanzen"),
        ("warten", "warte wartest wartet warten"),
        ("finden", "finde findest findet finden"),
        ("waschen", "wasche wäschst wäscht waschen"),
        ("verlassen", "verlasse verlässt verlässt verlassen"),
        ("betreten", "betrete betrittst betritt betreten"),
        ("einladen", "lade lädst lädt laden"),
        ("wissen", "weiß weißt weiß wissen"),
        ("beißen", "beiße beißt beißt beißen"),
    ],
)
def test_verbs_conjugate(verb, forms):
    found = [german_verb(VERBS[verb], "present", "", person, "sg", False).finite for person in (1, 2, 3)]
    found.append(german_verb(VERBS[verb], "present", "", 3, "pl", False).finite)
    assert " ".join(found) == forms


def test_separable_verbs_come_apart_and_together():
    verb = VERBS["aufwachen"]
    assert german_verb(verb, "present", "", 3, "sg", False) == ("wacht", "auf")
    assert german_verb(verb, "present", "", 3, "sg", True) == ("aufwacht", "")
    assert german_verb(verb, "perfect", "", 3, "sg", True) == ("ist", "aufgewacht")
    assert german_verb(verb, "modal", "wollen", 1, "sg", False) == ("will", "aufwachen")


@pytest.mark.parametrize(
    ("verb", "expected"), [("tragen", "carries"), ("holen", "fetches"), ("gehen", "goes"), ("kaufen", "buys")]
)
def test_english_third_person(verb, expected):
    assert english_verb(VERBS[verb], "present", "", 3, "sg", False, False).main == [(expected, 0, True)]


def test_links_lie_within_their_sentences():
    lengths = [(len(p.source.split()), len(p.target.split())) for p in PAIRS]
    for pair, (L, T) in zip(PAIRS, lengths, strict=True):
        assert all(s < L and t < T for s, t in pair.alignment.possible)


def test_every_english_word_is_linked():
    for pair in PAIRS:
        assert {t for _, t in pair.alignment.possible} == set(range(len(pair.target.split())))


def test_only_german_commas_are_without_a_link():
    for pair in PAIRS:
        linked = {s for s, _ in pair.alignment.possible}
        assert {word for s, word in enumerate(pair.source.split()) if s not in linked} <= {","}


def test_links_join_translations():
    noun_pairs = {(g, e) for noun in WORDS.nouns["animate"] for g, e in zip(noun.german, noun.english, strict=True)}
    german_nouns = {g for g, _ in noun_pairs}
    seen = 0
    for pair in PAIRS:
        german, english = pair.source.split(), pair.target.split()
        for s, t in pair.alignment.sure:
            if german[s] in german_nouns and english[t] in {e for g, e in noun_pairs if g == german[s]}:
                seen += 1
            elif german[s] in german_nouns:
                assert any(word.german[0] != german[s] for word in WORDS.nouns["animate"] if english[t] in word.english)
    assert seen > 3000


def test_sentences_end_and_commas_do_not_pile_up():
    for pair in PAIRS:
        assert pair.source[-2:] == pair.target[-2:]
        assert pair.source[-1] in ".?"
        assert not re.search(r", [,.?]|^,", pair.source)
        assert "  " not in pair.source + pair.target


def test_a_before_consonants_and_an_before_vowels():
    for pair in PAIRS:
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", pair.target)


def test_no_wrong_contractions_or_case_after_prepositions():
    for pair in PAIRS:
        assert not re.search(r"\b(in dem|in das|an dem|von dem) ", pair.source), pair.source
        assert not re.search(r"\b(mit|von) (die|das|einen|ein|eine|kein|keine) ", pair.source), pair.source
        after = re.findall(r"\b(?:mit|von) den (?:[a-zäöüß]+en )*([A-ZÄÖÜ]\w*)", pair.source)
        assert all(noun.endswith(("n", "s")) for noun in after), pair.source


def test_variety():
    assert len({pair.source for pair in PAIRS}) > 2950
    text = " ".join(pair.source for pair in PAIRS)
    for word in ("dass", "weil", "nicht", "keine", "im", "ins", "es gibt", "gestern", ", der", ", die", "hat", "ist"):
        assert f" {word} " in text, word
    assert 500 < len(set(text.split())) < 1100
