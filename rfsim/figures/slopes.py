"""Slopes of sampled curves, with the error that the scatter of the runs gives them."""

import numpy as np


def slope_weights(time: np.ndarray, window: tuple[float, float]) -> np.ndarray:
    """Weights c (k,) such that sum_k c_k log y_k is minus the least-squares slope of log y over the window.

    Records count by their spacing in log T, so that every decade has the same say.
    """
    inside = (time >= window[0] * (1.0 - 1e-12)) & (time <= window[1] * (1.0 + 1e-12))
    x = np.log(time[inside])
    share = np.gradient(x)
    centred = x - np.average(x, weights=share)
    weights = np.zeros(time.shape)
    weights[inside] = -share * centred / np.sum(share * np.square(centred))
    return weights


def sampled_slope(
    time: np.ndarray, value: np.ndarray, relative: np.ndarray, window: tuple[float, float]
) -> tuple[float, float]:
    """Exponent of a curve (k,) over the window and its standard error, by the delta method over independent runs.

    Records of one run are correlated; only runs count as independent.

    Parameters
    ----------
    time, value : (k,) the curve, positive inside the window.
    relative : (runs, k) what each run contributes to value/value: the mean over runs of its deviations is zero.
    """
    weights = slope_weights(time, window)
    used = weights != 0.0
    exponent = float(weights[used] @ np.log(value[used]))
    scatter = relative[:, used] @ weights[used]
    return exponent, float(np.std(scatter, ddof=1) / np.sqrt(len(scatter)))
