"""Structural time series: sums of blocks of states that move by known matrices and noises of learned variances."""
