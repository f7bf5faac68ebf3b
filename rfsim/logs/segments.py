"""A run that was resumed from another: the parent's rows and lr before it, its own from there on."""

import numpy as np

from rfsim.checks import InputError
from rfsim.logs.record import Run, run
from rfsim.schedules.record import Schedule


def merged(parent: Run, child: Run, begin: int) -> Run:
    """The child with its parent's part in front.

    Parameters
    ----------
    parent, child : the child's steps are counted from the parent's first step.
    begin : step at which the child was resumed; lr and batch before it are the parent's. Where both have rows from
        the child's first row on, the child's stay.

    Raises
    ------
    InputError : if the parent's schedule ends before `begin`.
    """
    if parent.schedule.steps < begin:
        raise InputError(f"parent {parent.name} has {parent.schedule.steps} steps, its child begins at step {begin}")
    if begin == 0:
        return child.told(f"the run begins at step 0: nothing of the parent {parent.name} is used")
    keep = (parent.step < child.step[0]) & (parent.step <= begin)  # after the resume it went another way
    common, old, new = np.intersect1d(parent.step, child.step, return_indices=True)
    line = (
        f"resumed from {parent.name} at step {begin}: {int(keep.sum())} rows and the lr of steps 0 to {begin - 1} are "
        f"the parent's"
    )
    if common.size:
        apart = np.abs(parent.loss[old] - child.loss[new])
        at_begin = parent.loss[old][0] - child.loss[new][0]
        line += (
            f"; {common.size} steps are in both, the child's rows stay (at step {common[0]:g} they differ by "
            f"{abs(at_begin):.2g}, at most by {apart.max():.2g} at step {common[apart.argmax()]:g})"
        )
    norm = None
    if parent.norm is not None and child.norm is not None:
        norm = np.append(parent.norm[:begin], child.norm[begin:])
    return run(
        np.append(parent.step[keep], child.step),
        np.append(parent.loss[keep], child.loss),
        Schedule(
            np.append(np.asarray(parent.schedule.lr)[:begin], np.asarray(child.schedule.lr)[begin:]),
            np.append(np.asarray(parent.schedule.batch)[:begin], np.asarray(child.schedule.batch)[begin:]),
        ),
        name=child.name,
        norm=norm,
        findings=(*child.findings, line),
        warmup=parent.warmup,
        known_as=child.known_as,
    )
