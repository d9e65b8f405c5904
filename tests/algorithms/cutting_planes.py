"""An independent minimum of V★(θ) − ref·θ over a confidence set: linear programs by HiGHS, Kelley's cuts, float64."""

import numpy as np
from scipy.optimize import linprog

CUTS = 400


def value_program(mdp):
    """(A, b, c): min cᵀ(θ, v) with A(θ, v) ≤ b is V★(θ) for a fixed θ: φ_hᵀθ_h + P_h v_{h+1} ≤ v_h."""
    horizon, n_states, n_actions, dim = mdp.horizon, mdp.n_states, mdp.n_actions, mdp.dim
    phi, measures = np.asarray(mdp.features), np.asarray(mdp.transition_measures)
    k = horizon * dim
    rows = np.zeros((horizon, n_states, n_actions, k + horizon * n_states))
    for h in range(horizon):
        rows[h, :, :, h * dim : (h + 1) * dim] = phi
        now = k + h * n_states
        rows[h, np.arange(n_states), :, now + np.arange(n_states)] = -1.0
        if h + 1 < horizon:
            rows[h, :, :, now + n_states : now + 2 * n_states] = phi @ measures[h]
    rest = np.zeros((horizon - 1) * n_states)
    cost = np.concatenate([np.zeros(k), np.asarray(mdp.initial_distribution), rest])
    matrix = rows.reshape(-1, rows.shape[-1])
    return matrix, np.zeros(len(matrix)), cost


def minimum_over_confidence_set(mdp, x, labels, centre, zeta, radius, reference):
    """(lower, upper) bound of min V★(θ) − ref·θ over {‖θ‖ ≤ radius, ℓ(θ) ≥ ℓ(θ̂) − ζ}.

    V★ is exact in the program; only the set is approached, by the tangent at the point where the ray from θ̂ to the
    program's optimum leaves it.
    """
    matrix, bound, cost = value_program(mdp)
    k = len(reference)
    cost[:k] -= reference
    bounds = [(-radius, radius)] * k + [(None, None)] * (len(cost) - k)
    cut, cut_bound = [], []

    def likelihood(theta):
        return -np.mean(np.logaddexp(0.0, -labels * (x @ theta)))

    floor = likelihood(centre) - zeta
    for _ in range(CUTS):
        found = linprog(cost, np.vstack([matrix, *cut]), np.concatenate([bound, cut_bound]), bounds=bounds)
        theta = found.x[:k]
        edge = _leaves(lambda t: likelihood(t) >= floor and np.linalg.norm(t) <= radius, centre, theta)
        normal, level = _tangent(edge, x, labels, floor, likelihood, radius)
        if normal @ theta <= level + 1e-9:
            break
        cut.append(np.concatenate([normal, np.zeros(len(cost) - k)]))
        cut_bound.append(level)
    at_edge = linprog(cost, matrix, bound, bounds=[(t, t) for t in edge] + [(None, None)] * (len(cost) - k))
    return found.fun, at_edge.fun


def _leaves(inside, start, end):
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if inside(start + middle * (end - start)) else (low, middle)
    return start + low * (end - start)


def _tangent(edge, x, labels, floor, likelihood, radius):
    """(normal, level) of normal·θ ≤ level, which holds on the set and with equality at its boundary point."""
    if radius - np.linalg.norm(edge) < 1e-9:
        return edge / np.linalg.norm(edge), radius
    slope = (labels / (1 + np.exp(labels * (x @ edge)))) @ x / len(labels)
    return -slope, likelihood(edge) - floor - slope @ edge
