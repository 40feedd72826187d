import numpy as np

from heedful.data.ragged import Ragged
from heedful.studies.page_data import counted_attention
from heedful.studies.run_directory import RunDirectory


def test_counted_attention_is_the_share_of_the_correct_label(smoke_run):
    run = RunDirectory(smoke_run)
    alpha = counted_attention(run)
    train, validation = run.split("train"), run.split("validation")
    assert isinstance(alpha, Ragged)
    np.testing.assert_array_equal(alpha.lengths, validation.lengths)
    C = np.zeros((len(run.vocabulary().words), 2))
    for m in range(len(train)):
        np.add.at(C, (train.text(m), train.labels[m]), 1 / train.lengths[m])
    for m in range(len(validation)):
        seen = C[validation.text(m)]
        share = seen[:, validation.labels[m]] / np.maximum(seen.sum(axis=1), 1e-300)
        np.testing.assert_allclose(alpha[m], share / share.sum(), rtol=1e-10)
