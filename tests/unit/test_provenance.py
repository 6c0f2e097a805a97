"""The state of the checkout, as results record it: whatever lies in the folder, no run fails for it."""

import os
import subprocess

import pytest

from csebench.base import provenance


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit, in place of the project's."""
    run = lambda *command: subprocess.run(["git", "-C", tmp_path, *command], check=True, capture_output=True)  # noqa: E731
    run("init", "-q")
    (tmp_path / "code.py").write_text("x = 1\n")
    run("add", "code.py")
    run("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    return tmp_path


def state() -> dict:
    provenance.code_state.cache_clear()
    try:
        return provenance.code_state()
    finally:
        provenance.code_state.cache_clear()


def test_a_clean_tree_has_a_commit_and_no_changes(checkout):
    assert len(state()["commit"]) == 40 and state()["dirty_diff_sha256"] is None


def test_edited_and_new_code_are_changes(checkout):
    (checkout / "code.py").write_bytes(b"x = 2 # \xff\n")  # not UTF-8
    edited = state()["dirty_diff_sha256"]
    (checkout / "methode-ü.py").write_text("y = 1\n")
    assert len({edited, state()["dirty_diff_sha256"], None}) == 3


@pytest.mark.parametrize("name", ["notes-ü.txt", "link.py", "nested", "runs", "unreadable.py"])
def test_what_else_lies_there_fails_nothing(checkout, name):
    path = checkout / name
    match name:
        case "link.py":
            path.symlink_to("nowhere")
        case "nested":
            subprocess.run(["git", "init", "-q", path], check=True)
            (path / "code.py").write_text("")
        case "runs":
            path.symlink_to("/tmp", target_is_directory=True)
        case "unreadable.py":
            path.mkdir()
            (path / "code.py").symlink_to(path)
        case _:
            path.write_text("")
    assert state()["commit"]


def test_a_large_new_file_is_not_read(checkout):
    with open(checkout / "vectors.bin", "wb") as file:
        os.truncate(file.fileno(), 2 << 40)
    assert state()["dirty_diff_sha256"] is None


def test_the_commit_is_that_of_the_project_in_a_hook_of_another_repository(checkout, tmp_path, monkeypatch):
    commit = state()["commit"]
    subprocess.run(["git", "init", "-q", tmp_path / "other"], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert state()["commit"] == commit


def test_changes_are_read_without_the_viewer_that_a_user_has_set(checkout, monkeypatch):
    (checkout / "code.py").write_text("x = 2\n")
    edited = state()["dirty_diff_sha256"]
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")  # or one with a window
    assert state()["dirty_diff_sha256"] == edited is not None


def test_a_git_that_cannot_be_run_fails_nothing(checkout, tmp_path, monkeypatch):
    (tmp_path / "git").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert state() == {"commit": None, "dirty_diff_sha256": None}


def test_a_checkout_that_git_cannot_read_is_reported(checkout, capsys):
    (checkout / ".git" / "HEAD").write_text("nonsense")
    assert state() == {"commit": None, "dirty_diff_sha256": None}
    assert "git cannot read the commit" in capsys.readouterr().err
