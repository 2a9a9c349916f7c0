"""The E step of a dense Gaussian: rows by what is missing, two forms of the square, and moments of hidden cells.

The formulas stand in `skvbem.emissions.gaussian.dense`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from skvbem._kernels import _hidden_cells
from skvbem._lazy import cached_property
from skvbem._memory import OF_BLOCKS
from skvbem._numerics import (
    covariance_of_products,
    first_axes_last,
    pack_symmetric,
    pairings,
    unpack_symmetric,
)
from skvbem.emissions.base import Step, as_matrix, by_cell, by_lane, by_row
from skvbem.emissions.gaussian.dense_table import DenseTable
from skvbem.emissions.gaussian.quadratic import Observed, Quadratic
from skvbem.families.parallel_generator import ParallelGenerator

#: Largest precision times squared reach for which the square is expanded.
MAX_EXPANDED_SQUARE = 1e7
#: Most columns for which it is.
MAX_EXPANDED_COLUMNS = 40
#: Square root of the share of a row, relative to the largest one of its component, below which it adds nothing.
NEGLIGIBLE_ROOT = 1e-20

# Bytes of what is kept for each pattern of missing cells.
_PATTERN_BYTES = 2**26


class DenseStep(Step):
    """A dense Gaussian at natural parameters.

    Parameters
    ----------
    natural : ndarray of shape (n_cells,) or (n_cells, n_lanes)
    reach : ndarray of shape (d,)
        How far rows reach in the frame.
    whitener : ndarray of shape (d, d)
    log_volume : float
        ln of its determinant, nats.
    tied : bool
        Whether all components share one precision matrix.
    """

    def __init__(self, natural: np.ndarray, reach: np.ndarray, *, whitener: np.ndarray, log_volume: float, tied: bool):
        self.whitener, self.tied, self.single = whitener, tied, natural.ndim == 1
        d = len(reach)
        if tied:
            lanes = np.ascontiguousarray(first_axes_last(natural.reshape(len(natural), -1)))
            mean_cells = lanes[:, : -1 - d * (d + 1) // 2].reshape(len(lanes), -1, 1 + d)
            precision_cells = lanes[:, None, mean_cells.shape[1] * (1 + d) :]
            at_origin = mean_cells[..., 0] + precision_cells[..., 0]
            linear, products = mean_cells[..., 1:], precision_cells[..., 1:]
        else:
            cells = by_lane(natural, 2 + d + d * (d + 1) // 2)
            at_origin, linear, products = cells[..., 0] + cells[..., 1], cells[..., 2 : 2 + d], cells[..., 2 + d :]
        self.constant, self.linear, self.products = at_origin + log_volume, linear, products
        squares = pack_symmetric(reach[:, None] * reach)
        # of |precision|, which products are minus half of; (n_lanes, n_precisions)
        self.is_far = 2 * (np.abs(products) @ squares) > MAX_EXPANDED_SQUARE
        self.expanded = d <= MAX_EXPANDED_COLUMNS and not self.is_far.any()
        self.shape, self.n_components = linear.shape, linear.shape[1]

    @cached_property
    def precision(self) -> np.ndarray:
        """Precision matrices, (n_lanes, n_precisions, d, d)."""
        d = self.shape[2]
        return unpack_symmetric(-2 * self.products / pairings(d), d)

    @cached_property
    def quadratic(self) -> Quadratic:
        """Log likelihood of whole rows as a quadratic function: precision, mean and peak."""
        mean = np.linalg.solve(self.precision, self.linear[..., None])[..., 0]
        return Quadratic(self.precision, mean, self.constant + 0.5 * (self.linear * mean).sum(axis=-1))

    @cached_property
    def _observed(self) -> Callable[..., Observed]:
        """Function from missing columns to the quadratic of the others; it caches results."""
        quadratic, whitener = self.quadratic, self.whitener  # not `self`: steps would wait for the garbage collector
        n_bytes = 8 * (2 * self.precision.size + 4 * self.linear.size + self.products.size)
        return lru_cache(maxsize=max(_PATTERN_BYTES // n_bytes, 1))(
            lambda *missing: quadratic.without(whitener[:, list(missing)])
        )

    def log_likelihood(self, block: DenseTable) -> np.ndarray:
        """Expected log likelihoods of rows, nats."""
        n_lanes, n_components, d = self.shape
        if len(block.runs) == 1 and not len(block.runs[0][1]):
            return by_row(self._of_rows(block, slice(None), block.runs[0][1]), n_components, self.single)
        log_likelihood = OF_BLOCKS.empty(n_lanes * n_components, len(block))
        log_likelihood[:] = 0.0
        if self._is_together:
            features = block.features
            for (rows, _), coefficients in zip(block.observed_runs, self._coefficients(block)):
                log_likelihood[:, rows] = coefficients @ features[:, rows]
            return by_row(log_likelihood, n_components, self.single)
        for rows, missing in block.runs:
            if len(missing) < d:
                log_likelihood[:, rows] = self._of_rows(block, rows, missing)
        return by_row(log_likelihood, n_components, self.single)

    @property
    def _is_together(self) -> bool:
        """All patterns of missing cells of a block are taken together."""
        return self.expanded and not self.tied

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Precision (n_members, d, d), mean and peak of the components of all lanes."""
        d, of = self.shape[2], self.quadratic
        precision, mean = np.ascontiguousarray(of.precision), np.ascontiguousarray(of.mean)
        return precision.reshape(-1, d, d), mean.reshape(-1, d), of.peak.ravel()

    def _coefficients(self, block: DenseTable) -> np.ndarray:
        """What multiplies the features of each run that has an observed cell, (n_runs, n_lanes x n_components, ...)."""
        whole = np.concatenate([self.constant[..., None], self.linear, self.products], axis=-1)
        whole = whole.reshape(-1, whole.shape[-1])
        coefficients = np.tile(whole, (len(block.observed_runs), 1, 1))
        if not _hidden_cells.coefficients(*self._members, self.whitener, *block.hidden_cells, coefficients):
            raise np.linalg.LinAlgError("A precision matrix is not positive.")
        return coefficients

    def _of_rows(self, block: DenseTable, rows, missing: tuple[int, ...]) -> np.ndarray:
        """Log likelihoods (n_lanes x n_components, n_rows) of rows with these columns missing."""
        n_lanes, n_components, d = self.shape
        if not (self.expanded or missing or self.tied or d > MAX_EXPANDED_COLUMNS or self.is_far.all()):
            return self._of_near_and_far(block, rows)
        if not self.expanded:
            observed = self._observed(*missing)
            halved = observed.squares(block.frame[:, rows])
            halved *= 0.5
            return np.subtract(observed.peak[..., None], halved, out=halved).reshape(n_lanes * n_components, -1)
        if missing:
            linear, products = self._observed(*missing).expanded
        else:  # natural parameters as they are
            linear, products = np.concatenate([self.constant[..., None], self.linear], axis=-1), self.products
        features = block.features[:, rows]
        if not self.tied:
            matrix = np.concatenate([linear, products], axis=-1).reshape(n_lanes * n_components, -1)
            return np.matmul(matrix, features, out=OF_BLOCKS.empty(len(matrix), features.shape[1]))
        log_likelihood = linear.reshape(-1, 1 + d) @ features[: 1 + d]
        log_likelihood.reshape(n_lanes, n_components, -1)[:] += (products[:, 0] @ features[1 + d :])[:, None]
        return log_likelihood

    def _of_near_and_far(self, block: DenseTable, rows) -> np.ndarray:
        """Log likelihoods of whole rows, expanded except for the few components that are narrow beside their reach."""
        d, far = self.shape[2], self.is_far.ravel()
        constant, linear = self.constant.ravel(), self.linear.reshape(-1, d)
        products = self.products.reshape(len(far), -1)
        matrix = np.concatenate([constant[:, None], linear, products], axis=-1)
        matrix[far] = 0.0  # whose product may leave the floats
        features = block.features[:, rows]
        log_likelihood = np.matmul(matrix, features, out=OF_BLOCKS.empty(len(far), features.shape[1]))
        precision = unpack_symmetric(-2 * products[far] / pairings(d), d)
        mean = np.linalg.solve(precision, linear[far][..., None])[..., 0]
        peak = constant[far] + 0.5 * (linear[far] * mean).sum(axis=-1)
        squares = Quadratic(precision[:, None], mean[:, None], peak).squares(block.frame[:, rows])[:, 0]
        log_likelihood[far] = peak[:, None] - 0.5 * squares
        return log_likelihood

    def zeros(self) -> np.ndarray:
        """An empty sum: of 1, z and its products for each component, (n_lanes, n_components, ...)."""
        n_lanes, n_components, d = self.shape
        return np.zeros((n_lanes, n_components, 1 + d + d * (d + 1) // 2))

    def add(self, block: DenseTable, responsibilities: np.ndarray, total: np.ndarray) -> None:
        """Add the statistics of a block to a sum."""
        matrix = as_matrix(responsibilities)
        if self._is_together and block.pattern is not None:
            features = block.features
            sums = np.array([matrix[:, rows] @ features[:, rows].T for rows, _ in block.observed_runs])
            if len(sums):
                precision, mean, _ = self._members
                flat = total.reshape(sums.shape[1:])
                _hidden_cells.add_completed(precision, mean, self.whitener, *block.hidden_cells, sums, flat)
            return
        for rows, missing in block.runs:
            if len(missing) == len(self.whitener):
                continue
            sums = self._sums(block, matrix[:, rows], rows)
            total += self._observed(*missing).completed(sums) if len(missing) else sums

    def of_rows(self, block: DenseTable) -> np.ndarray:
        """Statistics of each row, hidden cells completed by their moments."""
        n_components, d = self.shape[1:]
        statistics = np.zeros((len(block), n_components, 2 + d + d * (d + 1) // 2))
        for rows, missing in block.runs:
            if len(missing) == d:
                continue
            for k, (mean, covariance) in enumerate(self._moments(block, rows, missing)):
                products = pack_symmetric((mean[:, None] * mean).transpose(2, 0, 1)) + pack_symmetric(covariance)
                statistics[rows, k] = np.concatenate([np.ones((2, mean.shape[1])), mean, products.T]).T
        return statistics[..., self._own]

    def hidden_covariance(self, block: DenseTable, responsibilities: np.ndarray) -> np.ndarray | None:
        """Covariance of the hidden cells and of their products, which are Gaussian given the component."""
        n_components, d = self.shape[1:]
        hidden = [(rows, missing) for rows, missing in block.runs if 0 < len(missing) < d]
        if not hidden:
            return None
        summed = np.zeros((n_components, 2 + d + d * (d + 1) // 2, 2 + d + d * (d + 1) // 2))
        for rows, missing in hidden:
            for k, (mean, covariance) in enumerate(self._moments(block, rows, missing)):
                summed[k, 2:, 2:] += covariance_of_products(mean, covariance, responsibilities[rows, k])
        return summed[:, self._own[:, None], self._own]

    def _moments(self, block: DenseTable, rows, missing: tuple[int, ...]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Means (d, n_rows) and covariance of completed rows, component after component, of a single lane."""
        observed, frame = self._observed(*missing), block.frame[:, rows]
        for k in range(self.n_components):
            precision = 0 if self.tied else k
            if not missing:
                yield frame, np.zeros((len(frame), len(frame)))
                continue
            root = observed.root[0, precision]
            yield observed.keep[0, precision] @ frame + observed.shift[0, k][:, None], root @ root.T

    @property
    def _own(self) -> np.ndarray:
        """Cells of a component and of all of them, of its 1 for the mean, 1 for the precision, z and products."""
        d = self.shape[2]
        cells = np.arange(2 + d + d * (d + 1) // 2)
        return np.concatenate([[0], cells[2 : 2 + d], [1], cells[2 + d :]]) if self.tied else cells

    def _sums(self, block: DenseTable, responsibilities: np.ndarray, rows) -> np.ndarray:
        """Sums of 1, z and its products as they are, (n_lanes, n_components, ...).

        With one precision for all, products need only be summed over all components: they stand with the first.
        """
        n_lanes, n_components, d = self.shape
        if d <= MAX_EXPANDED_COLUMNS and not self.tied:
            return (responsibilities @ block.features[:, rows].T).reshape(n_lanes, n_components, -1)
        sums, frame = self.zeros(), block.frame[:, rows]
        sums[..., 0] = responsibilities.sum(axis=-1).reshape(n_lanes, n_components)
        sums[..., 1 : 1 + d] = (responsibilities @ frame.T).reshape(n_lanes, n_components, d)
        by_precision = responsibilities.reshape(n_lanes, n_components, -1)
        if self.tied:
            by_precision = by_precision.sum(axis=1, keepdims=True)
        if d <= MAX_EXPANDED_COLUMNS:
            sums[:, 0, 1 + d :] = by_precision[:, 0] @ block.features[1 + d :, rows].T
            return sums
        weighted = OF_BLOCKS.empty(*frame.shape)
        roots = np.sqrt(by_precision, out=OF_BLOCKS.empty(*by_precision.shape))
        for lane, k in np.ndindex(by_precision.shape[:2]):
            root = roots[lane, k]
            members = (root > NEGLIGIBLE_ROOT * root.max(initial=0.0)).nonzero()[0]
            if len(members) < len(root) / 2:  # columns are many where this is asked, and far from most components
                part = frame.take(members, axis=1)
                part *= root[members]
            else:
                part = np.multiply(frame, root, out=weighted)
            sums[lane, k, 1 + d :] = pack_symmetric(part @ part.T)  # of one matrix, which takes less time
        return sums

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Statistics of a sum."""
        d = self.shape[-1]
        if not self.tied:
            return by_cell(np.concatenate([total[..., :1], total], axis=-1), self.single)
        mean_cells = total[..., : 1 + d].reshape(len(total), -1)
        precision_cells = np.concatenate([total[..., 0].sum(axis=1)[:, None], total[..., 1 + d :].sum(axis=1)], axis=-1)
        return by_cell(np.concatenate([mean_cells, precision_cells], axis=-1), self.single)

    def add_drawn(
        self,
        block: DenseTable,
        components: np.ndarray,
        rng: ParallelGenerator,
        total: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> None:
        """Add statistics of rows whose components are known, missing cells drawn given the observed ones.

        A `weight`, (n_rows, n_lanes), multiplies the precision of a row, and its statistics.
        """
        n_lanes, n_components, d = self.shape
        components = components.reshape(n_lanes, -1)
        noises = [
            rng.standard_normal((len(missing), len(components[0, rows]), n_lanes)) if 0 < len(missing) < d else None
            for rows, missing in block.runs
        ]
        for lane in range(n_lanes):
            drawn, chosen = block.frame.copy(), components[lane]
            for (rows, missing), noise_of_lanes in zip(block.runs, noises):
                if noise_of_lanes is None:
                    continue
                observed, which, noise = self._observed(*missing), chosen[rows], noise_of_lanes[..., lane]
                if weight is not None:
                    noise = noise / np.sqrt(weight[rows, lane])
                for k in np.unique(which):
                    members = np.arange(len(block))[rows][which == k]
                    precision = 0 if self.tied else k
                    keep, root = observed.keep[lane, precision], observed.root[lane, precision]
                    completed = (
                        keep @ drawn[:, members] + observed.shift[lane, k][:, None] + root @ noise[:, which == k]
                    )
                    drawn[:, members] = completed
            seen = np.ones(len(block)) if block.pattern is None else 1.0 - block.patterns[block.pattern].all(axis=1)
            products = pack_symmetric((drawn[:, None] * drawn).transpose(2, 0, 1)).T
            features = np.concatenate([np.ones((1, len(block))), drawn, products]) * seen
            features *= 1.0 if weight is None else weight[:, lane]
            total[lane] += (chosen == np.arange(n_components)[:, None]).astype(float) @ features.T
