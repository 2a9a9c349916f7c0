"""Errors in the display of fitted columns."""

TESTS = ("plotting/test_fitted_columns_display.py",)

ERRORS = {
    "radii of a rose are shares": [("np.sqrt(column.observed)", "column.observed")],
    "the last bin of measurements ends before its end": [
        (
            "np.concatenate([below[:, 1:-1], up_to[:, -1:]], axis=1)",
            "np.concatenate([below[:, 1:-1], below[:, -1:] * 0], axis=1)",
        )
    ],
    "the fit of a rose has shares as radii": [
        ("radius = np.sqrt(column.expected.sum(axis=0))", "radius = column.expected.sum(axis=0)")
    ],
    "half a turn has no angles below it": [("np.clip(at, -turn / 2, (1 - 1e-12) * turn / 2)", "at")],
    "angles are drawn where they were counted from": [
        ("cells = np.remainder(cells + turn / 2, turn) - turn / 2", "cells = np.remainder(cells, turn) - turn / 2")
    ],
    "missing zeros and ones have a bar": [
        ('cells[~np.isnan(cells) if values.dtype.kind == "f" else cells >= 0]', "cells[~np.isnan(cells)]")
    ],
}
