"""Errors in memory that is used again."""

TESTS = ("test_memory.py",)

ERRORS = {
    "memory is given back while a view of it is left": [
        ("return np.asarray(_Lease(", "return np.ndarray(shape, buffer=_Lease("),
        ("shape, self._free, self._max_kept))", "shape, self._free, self._max_kept)._memory)"),
    ],
    "each block has memory of its own": [("while self._free and memory is None:", "while False:")],
    "log likelihoods are added to what is in the memory": [("        log_likelihood[:] = 0.0\n", "")],
}
