"""The controller's flags."""

import pytest
from click.testing import CliRunner

from schemas import kinds
from signalbox.run_controller import controller, kinds_named


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("", kinds.KINDS),
        (" , ", kinds.KINDS),
        ("PyTorchJob", (kinds.PYTORCH_JOB,)),
        ("trainingjobs, pytorchjob.kubeflow.org,TrainingJob", (kinds.TRAINING_JOB, kinds.PYTORCH_JOB)),
    ],
)
def test_kinds_by_name(words, rows):
    assert kinds_named(words) == rows


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--kinds=PyTorchJob,Deployment", "got 'Deployment'"),
        ("--kinds=pytorchjobs.example.com", "PyTorchJob.kubeflow.org"),
        ("--force-delete-after=-1", "is not in the range"),
    ],
)
def test_a_wrong_flag_is_one_error_that_names_it(flag, text):
    result = CliRunner().invoke(controller, [flag], terminal_width=1000)
    assert result.exit_code == 2
    assert flag.split("=")[0] in result.stderr
    assert text in " ".join(result.stderr.replace("│", " ").split())
