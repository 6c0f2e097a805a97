"""If a method changes in place what a gradient needs, the message has the file, the line and the
versions."""

from dataclasses import dataclass

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
    message = last_error(f"Traceback\n{TORCH}\n")
    assert message.endswith("is at version 12; expected version 11 instead.")


@dataclass(frozen=True)
class InPlace:
    """A loss that changes in place what a gradient needs."""

    lines: list[str]
    guilty: str  # the line that the message names
    versions: str


CASES = {
    "adds": InPlace(
        ["z = views.z1.exp()", "loss = info_nce(z, views.z2, 0.05)", "z += 1", "return loss"],
        guilty="loss = info_nce(z, views.z2, 0.05)",
        versions="is at version 1; expected version 0",
    ),
    "masks": InPlace(
        ["p = (views.z1 @ views.z2.T).softmax(1)", "p.fill_diagonal_(0)", "return p.sum()"],
        guilty="p = (views.z1 @ views.z2.T).softmax(1)",
        versions="is at version 1; expected version 0",
    ),
    "twice": InPlace(
        ["z = views.z1.tanh()", "z.mul_(2)", "z[0] = 0", "return z.square().mean()"],
        guilty="z = views.z1.tanh()",
        versions="is at version 2; expected version 0",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_line_whose_gradient_is_lost_is_named(name, project, make_spec, train):
    case = CASES[name]
    assert cli.main(["new", "method", name]) == 0
    path = project / "methods" / f"{name}.py"
    text = path.read_text()
    assert LOSS in text
    body = "".join(f"        {line}\n" for line in case.lines)
    path.write_text(text.replace(LOSS, body))
    caches.clear()

    with pytest.raises(RunFailed) as failed:
        train(make_spec(name), project / "run")

    message = str(failed.value)
    number = path.read_text().splitlines().index(f"        {case.guilty}") + 1
    place = f"methods/{name}.py: line {number}"
    assert message.startswith(f"{place}: the gradient of this line needs a tensor")
    assert case.versions in message
    assert "Hint" not in message
    assert last_error(f"csebench: {message}\n") == message  # short enough to be shown whole
