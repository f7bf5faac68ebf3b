"""Small cases that several test files share: random spectra and schedules with lr and batch both changing."""

from typing import NamedTuple

import numpy as np

import rfsim
from rfsim.schedules import from_arrays


class Case(NamedTuple):
    """A spectrum and a schedule with every number different."""

    spectrum: rfsim.Spectrum
    schedule: rfsim.Schedule

    @property
    def plain(self):
        """The same as plain numbers for the oracles: eigenvalues, energies, floor, noise, lr, batch, multiplicity."""
        s, c = self.spectrum, self.schedule
        return (
            [float(x) for x in s.eigenvalues],
            [float(x) for x in s.forcing_energy],
            float(s.floor),
            float(s.noise_var),
            [float(x) for x in c.lr],
            [float(x) for x in c.batch],
            [float(x) for x in s.multiplicity],
        )


def random_case(seed, *, modes=4, steps=12, noise=True, multiplicity=False, whole_batches=True):
    """A stable case: lr up to the pointwise limit of each step, batches 1..20 (fractions unless `whole_batches`)."""
    draw = np.random.default_rng(seed)
    lam = draw.uniform(0.05, 2.0, modes)
    batch = draw.integers(1, 21, steps).astype(float) if whole_batches else draw.uniform(0.3, 20.0, steps)
    lr = draw.uniform(0.0, 0.9, steps) * 2.0 / ((1.0 + 1.0 / batch) * lam.max())
    spectrum = rfsim.spectrum(
        lam,
        draw.exponential(1.0, modes),
        floor=draw.uniform(0.0, 0.3),
        noise_var=draw.uniform(0.1, 2.0) if noise else 0.0,
        multiplicity=draw.uniform(0.5, 3.0, modes) if multiplicity else None,
    )
    return Case(spectrum, from_arrays(lr, batch))


def every_step(schedule):
    """All steps 0..N."""
    return np.arange(schedule.steps + 1)
