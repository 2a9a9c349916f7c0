"""Errors in files of fits."""

TESTS = (
    "persistence/test_every_container.py",
    "persistence/test_damaged_files.py",
    "persistence/test_saved_fits.py",
    "persistence/test_changed_files.py",
)

ERRORS = {
    "indices of noises in a file may be any": [("(array >= 0) & (array < below)", "array >= -9")],
    "what a fit publishes need not be that of the fit": [("check(_alike(vars(estimator)", "(_alike(vars(estimator)")],
    "a step of pipelines may come without a fitted model": [
        ('model = getattr(fit, MODEL_OF_STEP.get(type(fit).__name__, ""), fit)', "model = fit"),
        ('(hasattr(model, "get_params") and not hasattr(model, "fitted"))', "False"),
    ],
    "checksums of saved fits are not compared": [
        ("sums.get(name) != sha256(part).hexdigest()", "sums.get(name) is None")
    ],
    "a newer format of saved fits is read as if it were known": [
        ("if version > VERSION:", "if version > VERSION + 9:")
    ],
    "arrays in the order of Fortran are saved in the order of C": [
        ("self._pieces.append(bytes_of(array, order))", 'self._pieces.append(bytes_of(array, "C"))')
    ],
    "arrays may be said to be longer than the file": [("if start + n_bytes > len(data):", "if n_bytes < 0:")],
    "members of saved fits may be compressed": [
        (
            "info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1",
            "False",
        )
    ],
    "files may set what the class of an estimator defines": [
        ("(not of_fit or hasattr(kind.type, name))", 'name.startswith("__")')
    ],
    "parts that a file lacks are not missed": [
        ("[name for name in kind.parts if name not in parts and name not in kind.optional]", "[]")
    ],
    "parents in a file may be anywhere": [
        ("all(places.issuperset(parents) for parents in layout.parents)", "len(layout.parents) == n")
    ],
    "infinity comes back from a file as the largest number": [('"inf": math.inf', '"inf": 1.7976931348623157e308')],
    "an array of objects comes back flat": [("return made.reshape(sizes)", "return made")],
}
