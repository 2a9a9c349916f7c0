"""Errors in spaces of structures."""

TESTS = ("graphs/test_spaces.py", "graphs", "search", "plotting/**/test_search_displays.py")

ERRORS = {
    "an orbit has as many graphs as there are renamings": [
        (".values())) // dag.n_automorphisms(latents)", ".values()))")
    ],
    "numbers have any latent below them": [
        ("or (node in self.latents and (number, node) in named)", "or node in self.latents")
    ],
}
