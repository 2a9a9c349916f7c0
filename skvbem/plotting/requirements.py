"""matplotlib is an extra: it is imported where something is drawn, and an error says how to get it."""


def need_matplotlib(owner: str) -> None:
    """Raise an ImportError that says what to install, if matplotlib is missing.

    Parameters
    ----------
    owner : str
        Who needs it.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{owner} needs matplotlib. Install it with: pip install 'skvbem[plot]'") from error
