import pytest

from heedful.errors import DataError
from heedful.metrics.translation_quality import corpus_bleu


@pytest.mark.parametrize(("translations", "references"), [(["a dog"], []), ([], []), ([], ["a dog"])])
def test_every_translation_has_its_reference(translations, references):
    with pytest.raises(DataError, match=f"{len(translations)} translations for {len(references)} references"):
        corpus_bleu(translations, references)
