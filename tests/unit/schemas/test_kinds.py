"""The table of kinds, and how a row is named."""

import pytest

from schemas import kinds


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("", ()),
        (" , ", ()),
        ("PyTorchJob", (kinds.PYTORCH_JOB,)),
        ("mpijobs,tfjob", (kinds.MPI_JOB, kinds.TF_JOB)),
        ("trainingjobs, pytorchjob.kubeflow.org,TrainingJob", (kinds.TRAINING_JOB, kinds.PYTORCH_JOB)),
    ],
)
def test_kinds_by_name(words, rows):
    assert kinds.named(words) == rows


@pytest.mark.parametrize("word", ["Deployment", "pytorchjobs.example.com", "kubeflow.org"])
def test_an_unknown_word_is_named_with_those_that_are_known(word):
    with pytest.raises(ValueError, match=r"must be kinds out of TrainingJob.signalbox.dev, .* \(got '" + word):
        kinds.named(f"TrainingJob,{word}")
