"""If csebench is killed, cannot write, or runs twice, the same command ends with the same bits."""

import os

import pytest
from killer import STAGES, TRAINING, Chaos

pytestmark = pytest.mark.slow
# it decides the schedule, which is the same in every call
SEED = int(os.environ.get("CHAOS_SEED", "0"))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The project that all tests disturb, one after the other."""
    project = Chaos(tmp_path_factory.mktemp("chaos"), SEED)
    yield project
    project.close()


@pytest.fixture
def chaos(project):
    """The project. At the end of a test, nothing may be lost, and no bit may differ."""
    project.losses.clear()
    project.unequal.clear()
    project.random.seed(SEED)
    yield project
    assert not project.losses, f"CHAOS_SEED={SEED}"
    assert not project.unequal, f"CHAOS_SEED={SEED}"


@pytest.mark.parametrize("stage", STAGES)
def test_killed(stage, chaos):
    chaos.disturb(stage, kills=4 if stage == TRAINING else 2)


@pytest.mark.parametrize("stage", [TRAINING, "html"])
@pytest.mark.parametrize("disk", ["full", "read-only"])
def test_a_disk_that_cannot_be_written(disk, stage, chaos):
    if not chaos.mounted:
        pytest.skip("mounting a disk needs root")
    chaos.disturb(stage, kills=0, disks=(disk,))


def test_two_workers(chaos):
    chaos.two_workers()


def test_snakemake_and_its_jobs(chaos):
    chaos.snakemake(kills=2)
