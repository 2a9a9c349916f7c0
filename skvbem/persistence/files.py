"""`save` and `load`: fits in files of data, which any version of the format reads again and nothing in which is run."""

from __future__ import annotations

import os
import warnings
from numbers import Real
from typing import Any

from sklearn.utils.validation import check_is_fitted

from skvbem._version import __version__ as VERSION
from skvbem.errors import SavedFitError, TooLargeError
from skvbem.formats.files import read_bytes, write_bytes
from skvbem.persistence.archive import Archive, DamagedError, packed, unpacked
from skvbem.persistence.decoding import Decoder
from skvbem.persistence.encoding import Encoder
from skvbem.persistence.registry import FITS, MODEL_OF_STEP, saved_class

#: Bytes that `load` reads by default.
MAX_BYTES = 2**31


def save(estimator: Any, path: str | os.PathLike) -> None:
    """Write a fitted estimator to a file that holds data alone, to be read by `load`.

    The file is a zip archive of arrays and JSON. It holds what `fit` has learned, the parameters and what scores of the
    evidence need to know of the fit, not the data. An existing file is replaced once the new one is complete.

    Parameters
    ----------
    estimator : fitted estimator or Network
        Any estimator of this library, or a `Network`. From a search take its `best_estimator_`, from a pipeline its
        steps.

    path : str or path
        By custom it ends with ``.skvbem``.

    Raises
    ------
    TypeError
        For any other object, and for what cannot be written as data: emissions from outside, functions, graphs of
        networkx, as parameters. It names the place.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    OSError
        If the file cannot be written.

    See Also
    --------
    load : The estimator that a file holds.

    Examples
    --------
    >>> import os, tempfile
    >>> from skvbem import VBMixture, load, save
    >>> from skvbem.datasets import load_faithful
    >>> X = load_faithful().data
    >>> model = VBMixture(n_components=2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, os.path.join(folder, "geyser.skvbem"))
    ...     again = load(os.path.join(folder, "geyser.skvbem"))
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all()), again.lower_bound_ == model.lower_bound_
    (True, True)
    """
    if type(estimator).__name__ not in FITS or saved_class(estimator) is None:
        raise TypeError(f"save takes a fitted {', '.join(FITS)}. Got {type(estimator).__name__}. {_hint(estimator)}")
    _check_path(path, "save")
    if hasattr(estimator, "get_params"):
        check_is_fitted(estimator)
    kind = type(estimator).__name__
    encoder = Encoder()
    try:
        fit = encoder.described(estimator, kind)
    except TypeError as error:
        raise TypeError(
            f"A file of data cannot hold this {kind}: {error} Give parameters as numbers, texts, arrays and objects of "
            "skvbem, or keep the estimator by pickle or joblib, whose files can run code."
        ) from None
    content = {"arrays": encoder.arrays.lines, "objects": encoder.objects, "fit": fit}
    write_bytes(packed(Archive(content, encoder.arrays.tobytes(), VERSION), kind), path)


def _check_path(path: Any, method: str) -> None:
    """Refuse what names no file."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"The 'path' of {method} must be a str or a path, such as 'model.skvbem'. Got {path!r} instead."
        )


def load(path: str | os.PathLike, *, max_bytes: int = MAX_BYTES) -> Any:
    """The fitted estimator that a file written by `save` holds.

    Nothing in the file is run: it names classes of this package alone, from a closed list, and what is damaged or was
    changed by accident is refused by its checksum. Predictions are the same to the last bit on the same machine and
    versions.

    Parameters
    ----------
    path : str or path

    max_bytes : int, default=2**31
        A longer file is refused before it is read. No member of it is compressed, so that what is read takes
        a small multiple of this; a description that would swell beyond it is refused before it is read.

    Returns
    -------
    fitted estimator or Network

    Raises
    ------
    SavedFitError
        If it is no such file, is damaged, or is of a newer version of the format; the error names the file.
    TooLargeError
        If it is longer than `max_bytes`.
    OSError
        If it cannot be read.

    See Also
    --------
    save : Write a fitted estimator.
    """
    _check_path(path, "load")
    if not isinstance(max_bytes, Real) or not 0 < max_bytes < 2**62:
        raise ValueError(f"The 'max_bytes' parameter of load must be a number of bytes above 0. Got {max_bytes!r}.")
    name = os.fspath(path)
    data = read_bytes(path, max_bytes)
    if len(data) > max_bytes:
        raise TooLargeError(f"{name!r} is longer than max_bytes={max_bytes}. Raise it if you trust the file.")
    try:
        archive = unpacked(data, VERSION)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what is sound warns of nothing
            fit = Decoder(archive.content, archive.arrays, {"_skvbem_version": VERSION}).fit
        if type(fit).__name__ not in FITS:
            raise DamagedError(f"it holds a {type(fit).__name__}")
        model = getattr(fit, MODEL_OF_STEP.get(type(fit).__name__, ""), fit)
        if type(model).__name__ not in FITS or (hasattr(model, "get_params") and not hasattr(model, "fitted")):
            raise DamagedError("it is not fitted")
    except Exception as error:  # whatever parts that do not belong together raise
        raise SavedFitError(f"{name!r} cannot be loaded: {_in_words(error)}.") from None
    return fit


def _in_words(error: Exception) -> str:
    text = str(error).strip().rstrip(".")
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text or 'no more is known'}"


def _hint(estimator: Any) -> str:
    if hasattr(estimator, "best_estimator_") or hasattr(estimator, "param_distributions"):
        return "Save its best_estimator_."
    if hasattr(estimator, "steps"):
        return "Save its steps."
    if isinstance(estimator, (str, os.PathLike)):
        return "The estimator comes first: save(estimator, path)."
    return "Other objects are kept by pickle or joblib, whose files can run code."
