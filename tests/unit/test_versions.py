"""The version lock: a change of code that can change a number must be declared."""

from csebench import versions


def test_code_changes_only_with_its_version():
    changed = versions.changed_without_bump()
    assert not changed, (
        f"bump the version of {changed}, or run: python -m csebench.versions --bless {' '.join(changed)}"
    )


def test_lock_is_up_to_date():
    """A new file may wait for its first note; what is noted must be as it is."""
    now = versions.current()
    assert "trainer" in versions.locked()
    assert versions.locked() == {unit: now.get(unit) for unit in versions.locked()}, "run: python -m csebench.versions"


def test_comments_and_layout_do_not_count(tmp_path):
    one, two, three = tmp_path / "1.py", tmp_path / "2.py", tmp_path / "3.py"
    one.write_text('"""Doc."""\nx = 1 + 2\n')
    two.write_text("# comment\nx = (1 +\n  2)\n")
    three.write_text("x = 1 + 3\n")
    assert versions.syntax_sha256(one) == versions.syntax_sha256(two) != versions.syntax_sha256(three)
