"""What came out of pretraining on noisy tags, over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traincast.recipes.over_seeds import OverSeeds, over_seeds, paired


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakRun:
    """Pretrained on tags of which a share was replaced, then judged by clean labels, on the test images."""

    noise_fraction: float
    is_resampled: bool
    n_images: int  # those with a tag
    right_fraction: float  # of the images that have their true tag, alone or among others
    fine_tuned_accuracy: float
    probe_accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakSeed:
    """All models of one seed: it draws clean labels, the long tail, tags, noise, first weights and order."""

    seed: int
    clean_accuracy: float  # clean labels alone, for as many steps as pretraining and fine-tuning have
    runs: tuple[WeakRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakLine:
    """One share of noise, with or without resampling, over all seeds. `gain` is over clean labels alone."""

    noise_fraction: float
    is_resampled: bool
    right_fraction: OverSeeds
    fine_tuned_accuracy: OverSeeds
    probe_accuracy: OverSeeds
    gain: OverSeeds


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """What square-root resampling adds to the accuracy at one share of noise, seed by seed."""

    noise_fraction: float
    fine_tuned: OverSeeds
    probe: OverSeeds


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakResult:
    """Runs have the same noise and resampling, in the same order, for every seed."""

    model: str
    n_clean: int
    n_tagged: int  # of the first seed, without added noise
    n_test: int
    seeds: tuple[WeakSeed, ...]
    stage_seconds: Mapping[str, float]

    @property
    def clean_accuracy(self) -> OverSeeds:
        return over_seeds([each.clean_accuracy for each in self.seeds])

    @property
    def lines(self) -> tuple[WeakLine, ...]:
        """By resampling, then by noise."""
        return tuple(self._line(place) for place in range(len(self.seeds[0].runs)))

    @property
    def resampling(self) -> tuple[Resampling, ...]:
        """By noise."""
        first = self.seeds[0].runs
        noises = dict.fromkeys(run.noise_fraction for run in first)
        return tuple(self._resampling(noise) for noise in noises)

    def to_dict(self) -> dict[str, Any]:
        """What --json prints: every run, and the means."""
        return {
            "model": self.model,
            "n_clean": self.n_clean,
            "n_tagged": self.n_tagged,
            "n_test": self.n_test,
            "clean_accuracy": self.clean_accuracy,
            "lines": self.lines,
            "resampling": self.resampling,
            "seeds": self.seeds,
            "stage_seconds": dict(self.stage_seconds),
        }

    def _line(self, place: int) -> WeakLine:
        runs = [each.runs[place] for each in self.seeds]
        tuned = [run.fine_tuned_accuracy for run in runs]
        return WeakLine(
            noise_fraction=runs[0].noise_fraction,
            is_resampled=runs[0].is_resampled,
            right_fraction=over_seeds([run.right_fraction for run in runs]),
            fine_tuned_accuracy=over_seeds(tuned),
            probe_accuracy=over_seeds([run.probe_accuracy for run in runs]),
            gain=paired(tuned, [each.clean_accuracy for each in self.seeds]),
        )

    def _resampling(self, noise: float) -> Resampling:
        drawn, plain = ([self._run(each, noise, is_resampled) for each in self.seeds] for is_resampled in (True, False))
        return Resampling(
            noise_fraction=noise,
            fine_tuned=paired([run.fine_tuned_accuracy for run in drawn], [run.fine_tuned_accuracy for run in plain]),
            probe=paired([run.probe_accuracy for run in drawn], [run.probe_accuracy for run in plain]),
        )

    @staticmethod
    def _run(seed: WeakSeed, noise: float, is_resampled: bool) -> WeakRun:
        return next(run for run in seed.runs if (run.noise_fraction, run.is_resampled) == (noise, is_resampled))
