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
    "missing zeros and ones have a bar": [
        ('cells[~np.isnan(cells) if values.dtype.kind == "f" else cells >= 0]', "cells[~np.isnan(cells)]")
    ],
}
