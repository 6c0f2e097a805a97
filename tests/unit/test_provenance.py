"""The state of the checkout, as results record it: whatever lies in the folder, no run fails for
it."""

import subprocess

import pytest

from csebench.base import provenance


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit, in place of the project's."""
    (tmp_path / "code.py").write_text("x = 1\n")
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"]
    for command in (["init", "-q"], ["add", "code.py"], commit):
        subprocess.run(["git", "-C", tmp_path, *command], check=True, capture_output=True)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    return tmp_path


def state() -> dict:
    return provenance.code_state.__wrapped__()


def test_edited_and_new_code_are_changes_and_other_files_are_not(checkout):
    states = [state()]
    assert len(states[0]["commit"]) == 40 and states[0]["dirty_diff_sha256"] is None
    (checkout / "results").mkdir()
    for name in ("notes-ü.txt", "results/new.py"):
        (checkout / name).write_text("")
        assert state() == states[0]
    (checkout / "code.py").write_bytes(b"x = 2 # \xff\n")  # not UTF-8
    states.append(state())
    subprocess.run(["git", "-C", checkout, "add", "code.py"], check=True)
    assert state() == states[-1]
    (checkout / "methode-ü.py").write_text("")
    states.append(state())
    assert len({str(state) for state in states}) == 3


def test_the_settings_of_a_user_and_of_a_hook_change_nothing(checkout, tmp_path, monkeypatch):
    (checkout / "code.py").write_text("x = 2\n")
    edited = state()
    subprocess.run(["git", "init", "-q", tmp_path / "other"], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")  # or a viewer with a window
    assert state() == edited and edited["dirty_diff_sha256"] is not None


def test_a_checkout_that_git_cannot_read_is_reported(checkout, capsys):
    (checkout / ".git" / "HEAD").write_text("nonsense")
    assert state() == {"commit": None, "dirty_diff_sha256": None}
    assert "git cannot read the commit" in capsys.readouterr().err


def test_a_git_that_cannot_be_run_fails_nothing(checkout, tmp_path, monkeypatch):
    (tmp_path / "git").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert state() == {"commit": None, "dirty_diff_sha256": None}
