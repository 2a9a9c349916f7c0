"""Errors in the threads of BLAS."""

TESTS = ("test_arithmetic.py",)

ERRORS = {
    "the first to leave restores the threads of BLAS": [
        (
            "        if not self.n_within:\n            for library, n in",
            "        if self.saved:\n            for library, n in",
        )
    ],
    "BLAS libraries that are loaded later are not seen": [
        ("if len(sys.modules) > self._n_modules:", "if not self._n_modules:")
    ],
    "a forked child waits for a lock that no thread of it holds": [
        ("self._lock, self._of_process.n_within = threading.Lock(), 0", "self._of_process.n_within = 0")
    ],
    "inherited methods alone have one thread of BLAS": [("list(vars(cls).items()):", "list(vars(cls).items())[:0]:")],
}
