"""The only module that imports scikit-learn's private names, and the one place that knows its versions (1.6 and up).

Callbacks exist from scikit-learn 1.9 on; before that the mixin adds nothing and reports go nowhere. Warnings are here
too, since to find the user's line they must see past scikit-learn's wrappers.
"""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache, partial, wraps
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import HasMethods, InvalidParameterError, Options, validate_parameter_constraints
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils._param_validation import StrOptions as _StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names_in, _check_sample_weight, _num_samples

from skvbem._arguments import check_argument, is_collection, is_real
from skvbem._names import did_you_mean, parameter_meant, shown

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in that adds nothing, for a scikit-learn without callbacks."""


try:
    from cloudpickle import dumps as _dumps
except ImportError:
    try:
        from joblib.externals.cloudpickle import dumps as _dumps  # before joblib 1.6
    except ImportError:
        from pickle import dumps as _dumps  # functions of scripts cannot be sent then

__all__ = [
    "N_JOBS",
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "IterationReport",
    "Options",
    "StrOptions",
    "SuggestingMixin",
    "check_feature_names_in",
    "check_parameters",
    "check_sample_weight",
    "fit_context",
    "has_shared_memory",
    "keep_parameters",
    "hold_workers",
    "in_store",
    "is_pool_warm",
    "output_of",
    "pickled",
    "returns_one_by_one",
    "worker_deaths",
]


class Interval(_Interval):
    """A constraint on numbers of an interval; booleans and spans of time are none, though they count as integers."""

    def is_satisfied_by(self, val):
        return not isinstance(val, (bool, np.bool_, np.timedelta64)) and super().is_satisfied_by(val)


class StrOptions(_StrOptions):
    """A constraint on names, which a message lists in order."""

    def __str__(self):
        return f"a str among {{{', '.join(map(repr, sorted(self.options)))}}}"


def _that_suggests(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor of the same signature, which says what may have been meant by a parameter that it does not have."""
    names = signature(init).parameters
    if any(each.kind is each.VAR_KEYWORD for each in names.values()):
        return init

    @wraps(init)
    def __init__(self, *args, **kwargs):
        unknown = [name for name in kwargs if name not in names]
        if unknown:
            raise TypeError(self._told_of_unknown(unknown[0]))
        init(self, *args, **kwargs)

    return __init__


class SuggestingMixin:
    """Of scikit-learn's estimators: a refusal of a name that is no option suggests the one that may have been meant."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        init = vars(cls).get("__init__")
        if init is not None:
            cls.__init__ = _that_suggests(init)

    def __getattr__(self, name: str):
        if hasattr(type(self), name):
            return object.__getattribute__(self, name)  # to raise its own reason again
        if name.startswith("_"):
            raise SuggestingMixin._absent(self, name)  # for Python, which asks for many, and not for users
        raise self._absent(name)

    def _absent(self, name: str) -> AttributeError:
        """The error of a public attribute that is not there."""
        return AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}.", name=name, obj=self)

    @classmethod
    @cache
    def _get_param_names(cls) -> tuple[str, ...]:
        """The names of parameters: asked for a thousand times in a search, and each time a signature was read."""
        return tuple(super()._get_param_names())  # type: ignore[misc]  # of the estimator that this is mixed into

    @classmethod
    def _told_of_unknown(cls, name: str) -> str:
        """What is said of a parameter that there is not."""
        known = cls._get_param_names()
        if hint := parameter_meant(name, known):
            return f"{cls.__name__} has no parameter {name!r}.{hint}"
        return f"{cls.__name__} has no parameter {name!r}. Its parameters are {', '.join(known)}."

    def set_params(self, **params):
        """Set parameters; a name that is none is refused, and the nearest suggested.

        Parameters
        ----------
        **params
            By the names that `get_params` has.

        Returns
        -------
        self : estimator instance
        """
        unknown = [name for name in params if "__" not in name and name not in self._get_param_names()]
        if unknown:
            raise ValueError(self._told_of_unknown(unknown[0]))
        return super().set_params(**params)

    def _validate_params(self, names=None):
        try:
            if names is None:
                super()._validate_params()
            else:
                params = {name: getattr(self, name) for name in names if hasattr(self, name)}
                validate_parameter_constraints(self._parameter_constraints, params, type(self).__name__)
        except InvalidParameterError as error:
            told = re.search(r"among \{(.*?)\}.* Got '(.*)' instead\.$", str(error))
            hint = did_you_mean(told[2], re.findall(r"'([^']*)'", told[1])) if told else ""
            if not hint:
                raise
            raise InvalidParameterError(f"{error}{hint}") from None
        except TypeError as error:  # a constraint compares what cannot be compared
            for name, value in self.get_params(deep=False).items():
                if isinstance(value, np.timedelta64):
                    raise InvalidParameterError(
                        f"The {name!r} parameter of {type(self).__name__} must not be a span of time. Got {value!r}."
                    ) from error
            raise


def keep_parameters(estimator, arguments: dict[str, Any]) -> None:
    """Keep the arguments of a constructor, its ``locals()``, as parameters of these names, as scikit-learn asks."""
    vars(estimator).update({name: value for name, value in arguments.items() if name not in ("self", "__class__")})


def check_parameters(estimator, names: Iterable[str] | None = None) -> None:
    """Refuse parameters of an estimator that break its constraints: those of these names, or all."""
    if names is None:  # scikit-learn's takes no names
        estimator._validate_params()
    else:
        estimator._validate_params(names)


#: The constraint on `n_jobs`: workers, or counted from all of them backwards.
N_JOBS = [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None]


def check_feature_names_in(estimator, input_features, *, generate_names: bool = True):
    """Names of the columns of X, which `input_features` may give; see scikit-learn."""
    given = [] if input_features is None else input_features
    is_right = (
        is_collection(given)
        and hasattr(given, "__len__")
        and not hasattr(given, "keys")
        and all(isinstance(name, str) for name in given)
    )
    check_argument(is_right, "input_features", "get_feature_names_out", "None or a list of names", input_features)
    return _check_feature_names_in(estimator, input_features, generate_names=generate_names)


def check_sample_weight(sample_weight, X) -> np.ndarray:
    """Weights that are float64, of shape (n_samples,), finite, not negative and not all zero.

    None means one for each row; a number means that number for each row. Raises ValueError otherwise.
    """
    if np.ma.is_masked(sample_weight):
        raise ValueError(
            "Sample weights must be numbers, one for each row. Some are masked: give each row a weight, 0 to leave it "
            "out, as by sample_weight.filled(0)."
        )
    given, n_samples = sample_weight, _num_samples(X)
    try:
        cells = None if given is None else np.asarray(given)
        if cells is not None and not (cells.ndim == 0 and is_real(given)):
            # Dates would be numbers of days, complex numbers would lose a part, and a text is one number or none.
            if cells.ndim == 0 or cells.dtype.kind in "mMc":
                raise TypeError
            given = np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"Sample weights must be numbers, one for each row. Got {shown(given)} instead.") from None
    shape = np.shape(given)
    if len(shape) > 2 or 0 in shape[1:] or (len(shape) == 1 and len(given) != n_samples):
        raise ValueError(
            f"'sample_weight' must have {n_samples} weights, one for each row of X, or for each sequence of a list. "
            f"Got an array of shape {shape}."
        )
    if given is not None and (negative := np.flatnonzero(np.less(given, 0))).size:
        raise ValueError(
            f"Sample weights say how often rows count, and must be >= 0. Got {np.ravel(given)[negative[0]]:g}, for row "
            f"{negative[0]}."
        )
    weights = _check_sample_weight(given, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():  # scikit-learn raises this one itself only in newer versions
        raise ValueError("Sample weights must contain at least one non-zero number.")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise ValueError("The sum of the sample weights must be finite. Divide them by a common factor.")
    return weights


def output_of(method: str, estimator) -> str:
    """The container that scikit-learn's ``set_output`` lets a method of an estimator return, "default" for its own."""
    return _get_output_config(method, estimator)["dense"]


class IterationReport:
    """Tells an estimator's callbacks about the iterations of one fit, and whether one of them asks to stop.

    Make it at the start of a method decorated with `fit_context`, call it after each iteration, `close` it at the end.
    An iteration is announced as begun and ended together, once it has run: whether another follows is then not known.

    Parameters
    ----------
    estimator : estimator or None
        With `CallbackSupportMixin`; without it, or without callbacks set, calls cost nothing and return False. None
        tells nobody.
    X : array-like
        The training data, handed to the callbacks that ask for it.
    y : array-like or None
        The same for targets.
    max_iterations : int or None
        The most iterations, or stages, there can be; None if that is not known.
    metadata : dict or None
        What else `fit` was given, such as `sample_weight`.

    Attributes
    ----------
    stopped : bool
        Whether a callback asked to stop after the last iteration.
    """

    def __init__(self, estimator, X, y=None, *, max_iterations: int | None = None, metadata: dict | None = None):
        self._given = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._task: Any = None
        self._iteration = "iteration"
        self.stopped = False
        kept = getattr(estimator, "__dict__", {})
        self._listened = bool(kept.get("_skl_callbacks"))
        if self._listened or "_parent_callback_ctx" in kept:
            self._task = estimator._init_callback_context(max_subtasks=max_iterations)
            self._task.call_on_fit_task_begin(**self._given)

    def __call__(self, fitted: Callable[[], dict] | None = None) -> bool:
        """Report one more iteration; True if a callback asks to stop.

        `fitted` returns the attributes that make the estimator usable as if the fit had ended here; it is called only
        for callbacks that want the fitted estimator.
        """
        if not self._listened:  # each context stays in memory until the fit ends
            return False
        context = self._task.subcontext(task_name=self._iteration)
        context.call_on_fit_task_begin(**self._given)
        self.stopped = bool(context.call_on_fit_task_end(**self._given, reconstruction_attributes=fitted))
        return self.stopped

    def stage(self, name: str, iteration: str, max_iterations: int | None = None) -> IterationReport:
        """A report of a stage of this fit, begun now, whose iterations have a name of their own; close it too."""
        report = copy(self)
        report._iteration, report.stopped = iteration, False
        if self._task is not None:
            report._task = self._task.subcontext(task_name=name, max_subtasks=max_iterations)
            report._task.call_on_fit_task_begin(**self._given)
        return report

    @contextmanager
    def handing_on(self, name: str, estimator) -> Iterator[None]:
        """A stage in which another estimator is fitted, whose iterations are told to the same callbacks."""
        if self._task is None:
            yield
            return
        context = self._task.subcontext(task_name=name)
        with context.propagate_callback_context(estimator):
            context.call_on_fit_task_begin(**self._given)
            yield
        context.call_on_fit_task_end(**self._given)

    def close(self, fitted: Callable[[], dict] | None = None) -> None:
        """Report the end of the fit, or of the stage."""
        if self._task is not None:
            self._task.call_on_fit_task_end(**self._given, reconstruction_attributes=fitted)


def is_pool_warm() -> bool:
    """Whether joblib's workers are there already, or the backend in force has no pool of joblib's to start."""
    from joblib.externals.loky import reusable_executor

    if type(_backend()).__name__ != "LokyBackend":
        return True
    executor = getattr(reusable_executor, "_executor", None)
    flags = getattr(executor, "_flags", None)
    is_closed = flags is None or flags.shutdown or flags.broken
    return not is_closed and bool(getattr(executor, "_processes", None))


def returns_one_by_one() -> bool:
    """Whether the joblib backend in force can hand over results as they come."""
    return bool(getattr(_backend(), "supports_return_generator", False))


def has_shared_memory() -> bool:
    """Whether the workers of the joblib backend in force are threads of this process."""
    return bool(getattr(_backend(), "supports_sharedmem", False))


def in_store(value) -> Callable[[], Any] | None:
    """How workers of a cluster take a value from its store, in which it is now; None if joblib sends data itself.

    joblib's backend for ray sends them with every task.
    """
    if type(_backend()).__name__ != "RayBackend":
        return None
    import ray

    return partial(_from_store, ray.put(value))


def _from_store(reference):
    import ray

    return ray.get(reference)


def worker_deaths() -> tuple[type[BaseException], ...]:
    """Errors by which joblib's backends say that a worker died, or that work or data were lost with it."""
    from concurrent.futures import BrokenExecutor, CancelledError

    from joblib.externals.loky.process_executor import BrokenProcessPool, ShutdownExecutorError

    errors: list[type[BaseException]] = [BrokenExecutor, BrokenProcessPool, ShutdownExecutorError, CancelledError]
    for package, names in _DEATHS.items():
        if package in sys.modules:  # else none of its errors can have been raised
            errors += [error for name in names if (error := getattr(sys.modules[package], name, None)) is not None]
    return tuple(errors)


_DEATHS = {
    "distributed.scheduler": ("KilledWorker",),
    "ray.exceptions": ("RayActorError", "WorkerCrashedError", "OutOfMemoryError", "ObjectLostError", "NodeDiedError"),
}


def hold_workers(parallel) -> None:
    """Begin the life of a joblib `Parallel` whose workers must stay workers whatever dies of them.

    joblib itself runs tasks in this process when a cluster is down to one worker, also the task that killed the others;
    and its dask backend waits for ever for what a dead worker did.
    """
    parallel.__enter__()
    n_found = parallel._effective_n_jobs
    parallel._effective_n_jobs = lambda: max(n_found(), 2)
    backend = parallel._backend
    name = "submit" if "submit" in vars(type(backend)) else "apply_async"  # before joblib 1.5
    if type(backend).__name__ != "DaskDistributedBackend" or name in vars(backend):
        return
    send = getattr(backend, name)

    def sent(func, callback=None):
        future = send(func, callback)
        future.add_done_callback(
            lambda done: done.exception() is None or callback is None or callback(done.exception())
        )
        return future

    setattr(backend, name, sent)


def pickled(value, keep_inside: Callable[[pickle.PickleBuffer], bool]) -> bytes:
    """A pickle as joblib makes it, functions of scripts included, less the buffers that are not to be kept inside."""
    return _dumps(value, protocol=5, buffer_callback=keep_inside)


def _backend():
    from joblib.parallel import get_active_backend

    return get_active_backend()[0]
