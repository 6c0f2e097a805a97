"""Whatever is killed, fails to write, or runs twice: the same command ends with the same bits
(killer.py)."""

import os

import pytest
from killer import STAGES, TRAINING, Chaos

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("CHAOS_SEED", "0"))  # of the schedule, which is the same in every call


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    chaos = Chaos(tmp_path_factory.mktemp("chaos"), SEED)
    yield chaos
    chaos.close()


@pytest.fixture
def chaos(made):
    """No loss and no unequal bit at the end of a test."""
    made.losses.clear()
    made.unequal.clear()
    made.random.seed(SEED)
    yield made
    assert not made.losses and not made.unequal, f"CHAOS_SEED={SEED}"


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
