"""The command keeps compiled programs; the library alone does not."""

import os

import jax
import pytest

from robust_rlhf_jax.compilation_cache import VARIABLE, keep_compiled_programs, keeps_compiled_programs

NAMES = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


@pytest.fixture(autouse=True)
def as_before():
    """The tests' own cache is away meanwhile."""
    before = {name: getattr(jax.config, name) for name in NAMES}
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_off_changes_nothing(monkeypatch):
    monkeypatch.setenv(VARIABLE, "off")
    keep_compiled_programs()
    assert jax.config.jax_compilation_cache_dir is None
    assert not keeps_compiled_programs()


def test_programs_are_kept_unless_it_is_off_and_jax_has_no_folder(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert keeps_compiled_programs()
    monkeypatch.setenv(VARIABLE, "off")
    assert not keeps_compiled_programs()
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    assert keeps_compiled_programs()


def test_a_path_moves_it(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    keep_compiled_programs()
    assert jax.config.jax_compilation_cache_dir == str(tmp_path)


def test_it_is_in_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: f"{tmp_path}/{name}")
    keep_compiled_programs()
    assert jax.config.jax_compilation_cache_dir == f"{tmp_path}/robust-rlhf-jax"


def test_a_folder_of_jaxs_own_stays(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE)
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    keep_compiled_programs()
    assert jax.config.jax_compilation_cache_dir == str(tmp_path)


def test_a_new_folder_is_for_its_owner_alone(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "deep" / "cache"))
    before = os.umask(0)
    try:
        keep_compiled_programs()
    finally:
        os.umask(before)
    assert (tmp_path / "deep" / "cache").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_refused(monkeypatch, tmp_path, mode):
    """They could put programs there that run in this user's name."""
    tmp_path.chmod(mode)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match=f"others can write to {tmp_path}"):
        keep_compiled_programs()
    assert jax.config.jax_compilation_cache_dir is None


def test_a_file_is_no_folder(monkeypatch, tmp_path):
    (tmp_path / "taken").write_text("mine")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "taken"))
    with pytest.raises(ValueError, match=r"taken cannot be a cache .*: set another, or off\."):
        keep_compiled_programs()
