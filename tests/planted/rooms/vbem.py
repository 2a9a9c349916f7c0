"""Errors in the ascent of the lower bound."""

TESTS = ("vbem", "optima", "models", "laws", "families", "kernels")

ERRORS = {
    "the last restart is taken, not the best": [("best = max(ends, key=", "best = min(ends, key=")],
    "the mode in probabilities is the natural one": [
        ('Form("map", density=False, lowered_by=1.0)', 'Form("map", density=False)')
    ],
    "an extrapolation is kept though the bound falls": [
        ("            if value[lane] >= at_second[lane]:\n", "            if value[lane] == value[lane]:\n")
    ],
    "leaps by secants lead the other way": [("to = here - moves @ multiples", "to = here + moves @ multiples")],
    "what the last leap gained is not still to come": [
        ("            if still < leapt[lane]:\n", "            if still < 0.0 * leapt[lane]:\n")
    ],
    "the bound of one start is reported for another's tables": [
        ("in zip(result.statistics.T, each)", "in zip(np.roll(result.statistics.T, 1, axis=0), each)")
    ],
    "what starts reach on distinct rows is raced again on repeats": [("if fewer.is_sample:", "if True:")],
    "a race is won by what does not count": [
        ("objective = objective[self.is_regular(statistics)]", "objective = objective[:]")
    ],
    "starts of one objective are taken for one": [("<= _SAME_LENGTH * other:", "<= other:")],
    "the better half of starts is left": [
        ("np.lexsort((-objective, ~is_regular))", "np.lexsort((objective, ~is_regular))")
    ],
    "a move that lowers the objective is kept": [
        ("        place = _first_of_the_best(candidates, left)\n", "        place = left[-1]\n")
    ],
    "what cannot reach the best goes on": [
        ("return candidates[_first_of_the_best(candidates, _best_first(candidates))]", "return candidates[-1]")
    ],
    "a search ends after one round, whoever met the best": [
        ("return max(self.most_rounds - self.hastens * self.n_met, min(self.most_rounds, 1))", "return 1"),
    ],
    "moves that end in the best are taken for starts that met it": [
        ("sum(each.is_new_start and each.may_meet", "sum(each.may_meet")
    ],
    "moves that come back to the best say nothing": [
        ("if self.hastens and self.returned >= TUNING.returned:", "if False:")
    ],
    "tied values of columns make no components": [
        ("return not self.smoothing and ties.matter(self.prior, self.rows)", "return False")
    ],
    "tied values are taken for all rows": [("first[k] = column == column[row]", "first[k] = column == column")],
    "many optima are searched no longer than few": [("TUNING.n_rounds_where_rugged * is_rugged", "0")],
    "sizes are only raced, however components overlap": [
        ("is_simple = n > 1 and overlap(self.rows, parts.of.expected_rows) < TUNING.overlap", "is_simple = n > 1")
    ],
    "sizes are only raced, however few rows are": [
        ("n_enough = TUNING.rows_per_parameter * one.model.prior.n_free_parameters", "n_enough = 0.0")
    ],
    "by maximum likelihood any number of divisions are spikes": [("if n_spikes == n_spikes_at_most:", "if False:")],
    "a brief round divides into spikes": [("most // 2 if with_unions else 0", "most // 2")],
    "no half is a spike": [("dtype=bool) if spikes is None else spikes", "dtype=bool)")],
    "brief rounds before a better optimum count after it": [
        ("self.n_brief = 0 if is_better else self.n_brief", "self.n_brief = self.n_brief")
    ],
    "all moves are tried where a brief round is enough": [
        ("if self.hastens and self.n_failed and self.had_enough:", "if False:")
    ],
    "no round is brief": [("return self.is_agreed or (self.hastens and self.n_failed == 0)", "return self.is_agreed")],
    "all numbers of components are fitted from the same new starts": [
        ('key = "anew", model.n_components, numbers_of(', 'key = "anew", 0, numbers_of(')
    ],
    "moves that came back to an optimum speak for a better one": [
        ("self.returned = 0.0 if is_better else self.returned + ", "self.returned += ")
    ],
    "a survivor of the sample is lost": [("if len(kept) == TUNING.n_survivors:", "if len(kept) == 1:")],
    "what is nearly the best on a sample never sees all rows": [
        ("least = candidates[0].objective - TUNING.nats_of_sample * ", "least = candidates[0].objective - 0.0 * ")
    ],
    "the gain still to come is forgotten in a race": [
        (
            "not done[lane] and not at_second[lane] + reach * still < best",
            "not done[lane] and not at_second[lane] < best",
        )
    ],
    "an optimum that a race left on its way is kept beside itself": [
        ("n_steps_to_end: int = 100", "n_steps_to_end: int = 2"),
        ("for each in others if each.has_ended)])", "for each in others)])"),
    ],
    "chains start from optima that have no part of the posterior": [
        ("nats_of_mode: float = 12.0", "nats_of_mode: float = 1200.0"),
    ],
    "annealing forgets the temperature": [("starts *= inverse_temperature\n", "starts *= 1.0\n")],
    "parameters are drawn after all counts, near the optimum": [
        ("statistics[:, None] * np.resize(TUNING.fractions_of_draws, n)", "statistics[:, None] * np.resize(1.0, n)")
    ],
}
