"""A method that changes in place what a gradient needs: the message has the file, the line and
the versions."""

import pytest

from csebench import cli
from csebench.base import caches
from csebench.base.errors import RunFailed, last_error

TORCH = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an"
    " inplace operation: [torch.cuda.FloatTensor [64, 768]], which is output 0 of"
    " AsStridedBackward0, is at version 12; expected version 11 instead. Hint: enable anomaly"
    " detection to find the operation that failed to compute its gradient, with"
    " torch.autograd.set_detect_anomaly(True, check_nan=False)."
)
LOSS = "        return info_nce(views.z1, views.z2, self.p.temperature, views.queue)\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    caches.clear()
    yield tmp_path
    monkeypatch.undo()
    caches.clear()


def test_the_last_message_of_a_process_keeps_the_versions():
    assert last_error(f"Traceback\n{TORCH}\n").endswith(
        "is at version 12; expected version 11 instead."
    )


@pytest.mark.parametrize(
    ("name", "lines", "guilty", "versions"),
    [
        (
            "adds",
            ["z = views.z1.exp()", "loss = info_nce(z, views.z2, 0.05)", "z += 1", "return loss"],
            1,
            (1, 0),
        ),
        (
            "masks",
            ["p = (views.z1 @ views.z2.T).softmax(1)", "p.fill_diagonal_(0)", "return p.sum()"],
            0,
            (1, 0),
        ),
        (
            "twice",
            ["z = views.z1.tanh()", "z.mul_(2)", "z[0] = 0", "return z.square().mean()"],
            0,
            (2, 0),
        ),
    ],
)
def test_the_line_whose_gradient_is_lost_is_named(
    name, lines, guilty, versions, project, make_spec, train
):
    assert cli.main(["new", "method", name]) == 0
    path = project / "methods" / f"{name}.py"
    text = path.read_text()
    assert LOSS in text
    path.write_text(text.replace(LOSS, "".join(f"        {line}\n" for line in lines)))
    caches.clear()
    number = path.read_text().splitlines().index(f"        {lines[guilty]}") + 1
    with pytest.raises(RunFailed) as failed:
        train(make_spec(name), project / "run")
    message = str(failed.value)
    assert message.startswith(
        f"methods/{name}.py: line {number}: the gradient of this line needs a tensor"
    )
    assert (
        "is at version {}; expected version {}".format(*versions) in message
        and "Hint" not in message
    )
    assert last_error(f"csebench: {message}\n") == message  # short enough to be shown whole
