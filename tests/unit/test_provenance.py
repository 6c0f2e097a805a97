"""The state of the checkout, which results record. No run fails because of what lies in the
folder."""

import subprocess

import pytest

from csebench.base import provenance


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Make a repository with one commit and let it be the project's."""
    (tmp_path / "code.py").write_text("x = 1\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "code.py")
    git(tmp_path, *author, "commit", "-qm", "first")
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    return tmp_path


def git(folder, *arguments):
    """Run git in a folder."""
    subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)


def state() -> dict:
    """Read the state of the checkout as it is now."""
    return provenance.code_state.__wrapped__()


def test_edited_and_new_code_are_changes_and_other_files_are_not(checkout):
    clean = state()
    assert len(clean["commit"]) == 40
    assert clean["dirty_diff_sha256"] is None

    (checkout / "results").mkdir()
    for name in ("notes-ü.txt", "results/new.py"):
        (checkout / name).write_text("")
        assert state() == clean

    (checkout / "code.py").write_bytes(b"x = 2 # \xff\n")  # not UTF-8
    edited = state()
    git(checkout, "add", "code.py")
    assert state() == edited

    (checkout / "methode-ü.py").write_text("")
    with_new_file = state()
    assert clean != edited
    assert edited != with_new_file
    assert clean != with_new_file


def test_the_settings_of_a_user_and_of_a_hook_change_nothing(checkout, tmp_path, monkeypatch):
    (checkout / "code.py").write_text("x = 2\n")
    edited = state()
    assert edited["dirty_diff_sha256"] is not None

    git(tmp_path, "init", "-q", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")  # or a viewer with a window
    assert state() == edited


def test_a_checkout_that_git_cannot_read_is_reported(checkout, capsys):
    (checkout / ".git" / "HEAD").write_text("nonsense")
    assert state() == {"commit": None, "dirty_diff_sha256": None}
    assert "git cannot read the commit" in capsys.readouterr().err


def test_a_git_that_cannot_be_run_fails_nothing(checkout, tmp_path, monkeypatch):
    (tmp_path / "git").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert state() == {"commit": None, "dirty_diff_sha256": None}
