"""Error rates of `csebench judge`, by simulation: two systems of equal quality, and how often they
are told apart.

A value of an item is the item's difficulty, plus how well the system suits the item, plus noise. In
the population of items, both systems have the same mean. Seeds of a system differ by a shift, and
each value again by noise. A verdict `higher` or `lower` is then an error. 5 % are intended. With
several systems, one false verdict among all pairs is an error.

    python benchmarks/systems.py [--draws 2000] [--quick]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from tabulate import tabulate

from csebench.base.terminal import bar
from csebench.judging import task_scores
from csebench.judging.comparison import judge_systems
from csebench.judging.systems import JudgedSystem, JudgedSystems
from csebench.judging.task_scores import ItemValue, TaskScore, score_of_items
from csebench.report.numbers.verdict_words import VerdictWord

NOISE = 0.05  # deviation of a value over seeds
SHIFT = 0.01  # deviation of a seed's mean


@dataclass(frozen=True)
class Setting:
    """What is simulated."""

    values: str
    items: int = 200  # of each task
    tasks: int = 1
    seeds: tuple[int, ...] = (1, 1)  # of each system
    suits: float = 0.15  # deviation over items of how well a system suits an item
    has_items: bool = True  # whether the judge sees values of items

    @property
    def seeds_text(self) -> str:
        return " + ".join(map(str, self.seeds))


BINARY = "right or wrong"
FRACTIONS = "fractions"
# on the same test items: without values of items, the verdict is about these items only
SETTINGS = [
    Setting(BINARY),
    Setting(BINARY, items=20),
    Setting(FRACTIONS),
    Setting(FRACTIONS, items=1000),
    Setting(FRACTIONS, items=10),
    Setting(FRACTIONS, tasks=8),
    Setting(FRACTIONS, seeds=(3, 3)),
    Setting(FRACTIONS, seeds=(5, 2)),
    Setting(FRACTIONS, tasks=8, seeds=(3, 3)),
    Setting(FRACTIONS, seeds=(3, 3, 3, 3, 3, 3)),
    Setting(FRACTIONS, seeds=(3, 3), suits=0.0, has_items=False),
    Setting(FRACTIONS, seeds=(5, 2), suits=0.0, has_items=False),
]


def made_up_systems(setting: Setting, generator: np.random.Generator) -> JudgedSystems:
    """Draw systems of equal quality."""
    tasks = tuple(f"task {number}" for number in range(setting.tasks))
    difficulty = {task: generator.normal(0.5, 0.1, setting.items) for task in tasks}
    systems = []
    for number, seeds in enumerate(setting.seeds):
        shifts = np.zeros(1)
        if seeds > 1:  # a system of one seed stands for this one model
            shifts = generator.normal(0, SHIFT, seeds)
        scores = {}
        for task in tasks:
            expected = difficulty[task] + generator.normal(0, setting.suits, setting.items)
            of_seeds = []
            for shift in shifts:
                values = expected + shift + generator.normal(0, NOISE, setting.items)
                if setting.values == BINARY:
                    values = (values > 0.5).astype(float)
                of_seeds.append(made_up_score(task, values, setting.has_items))
            scores[task] = tuple(of_seeds)
        systems.append(JudgedSystem(f"system {number}", scores))
    return JudgedSystems(tuple(systems), tasks, ())


def made_up_score(task: str, values: np.ndarray, has_items: bool) -> TaskScore:
    """Make the score of a task from values of its items."""
    items = {str(number): ItemValue(value) for number, value in enumerate(values.tolist())}
    score = score_of_items(task, items)
    if has_items:
        return score
    return replace(score, replicates=None)


def false_verdicts(setting: Setting, draws: int) -> float:
    """Compute the share of draws in which a system is called higher or lower than another."""
    generator = np.random.default_rng(0)
    errors = 0
    for _ in bar(range(draws), "draws"):
        judged = judge_systems(made_up_systems(setting, generator))
        words = {pair.overall.relation.word for pair in judged.pairs}
        errors += bool(words & {VerdictWord.HIGHER, VerdictWord.LOWER})
    return errors / draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="20 draws")
    args = parser.parse_args()
    draws = 20 if args.quick else args.draws
    # the same signs for every draw of systems; making them takes most of the time
    task_scores.draw_signs = cache(task_scores.draw_signs)
    rows = []
    for setting in SETTINGS:
        share = false_verdicts(setting, draws)
        items = setting.items if setting.has_items else "not known"
        row = [setting.values, setting.tasks, items, setting.seeds_text, f"{100 * share:.1f}"]
        rows.append(row)
    print(f"{draws} draws of systems of equal quality\n")
    print(tabulate(rows, ["values", "tasks", "items", "seeds", "higher or lower, %"]))


if __name__ == "__main__":
    main()
