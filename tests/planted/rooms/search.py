"""Errors in the search over structures."""

TESTS = ("search", "graphs", "plotting/**/test_search_displays.py")

ERRORS = {
    "the default prior of graphs leaves edges at even odds": [
        ("probability = 1.0 / (len(graphs.observed) + 2.0)", "probability = 0.5")
    ],
    "the mean over equivalent sample sizes is their sum": [
        ("log_sum_exp(scores, axis=1) - np.log(scores.shape[1])", "log_sum_exp(scores, axis=1)")
    ],
    "tables of more cells than rows are taken": [("most = max(reading.rows.total_weight, *required)", "most = 1e9")],
    "what a space requires is above the cap": [
        ("most = max(reading.rows.total_weight, *required)", "most = reading.rows.total_weight")
    ],
    "graphs that the cap excludes keep their prior": [("edge_log_odds[scores == -inf] = -inf", "pass")],
    "tables of candidates that are tried have no cap": [
        ("if any(size > self.most_cells for size in sizes)", "if False")
    ],
    "a prior that a user has set is replaced": [('params.get("prior") != AUTO or not hasattr', "not hasattr")],
    "penalized likelihoods get the priors of evidences": [
        ("isinstance(score, EvidenceScorer) and not SCORES[score.kind].is_penalized_likelihood", "True")
    ],
    "equal counts of a table are taken once": [("times[k] = counted[<Py_ssize_t>value[k]]", "times[k] = 1.0")],
    "what improbable completions had is lost": [
        ("weight *= (self.row_weight / np.bincount(row, weights=weight, minlength=len(self.row_weight)))[row]", "pass")
    ],
    "priors are asked of structures without the hidden nodes": [
        ("replace(problem, space=columns, prior=prior)", "replace(problem, space=columns)")
    ],
    "a row whose completions are all improbable is lost": [
        ("np.minimum(least * self.row_weight, most)[self.row]", "(least * self.row_weight)[self.row]")
    ],
    "a climb begins though nothing that it finds may be tried": [
        ("if problem.runner.is_full():", "if False and problem.runner.is_full():")
    ],
    "the posterior forgets the prior": [("-np.inf) + log_priors - logsumexp", "-np.inf) - logsumexp")],
    "latents of other structures keep their names": [
        ("linear_sum_assignment(common, maximize=True)", "linear_sum_assignment(common)")
    ],
    "a latent with one child counts as shared": [("weight * ((has @ has.T) > 0)", "weight * (has @ has.T)")],
    "candidates are told apart by the names of latents": [("content(canonical(setting))", "content(dict(setting))")],
    "ties go to more parameters": [
        ("else -value, np.inf if size is None else size", "else -value, np.inf if size is None else -size")
    ],
    "what is scored again keeps its place": [("order = [best[k] for k in again] + rest", "order = best + rest")],
    "chains over structures leave the prior out": [("(log_priors - np.log(n_graphs))", "(-np.log(n_graphs))")],
    "a structure counts once for each name of its latents": [("(log_priors - np.log(n_graphs))", "(1.0 * log_priors)")],
    "the mass of intervals is lost on the way to the best estimator": [
        (
            "return getattr(self._asked(), name)(*args, **options)",
            "return getattr(self._asked(), name)(*args[:1], **options)",
        )
    ],
    "the front is cut too early": [("(rest <= TUNING.max_rest or", "(rest <= 1.0 or")],
    "probabilities know of no errors of evidences": [("errors[likely, None] * rng", "0.0 * rng")],
    "the sum over graphs leaves the prior out": [
        ("np.where(allowed, edge_log_odds, -inf)", "np.where(allowed, 0.0, -inf)")
    ],
    "graphs with several sinks count several times": [
        ("terms.weights[i] = sign * expl(", "terms.weights[i] = 1 * expl(")
    ],
    "chains that stay where they began are believed": [
        ("if met is not None and not met.is_stuck:", "if met is not None:")
    ],
    "one candidate more than asked for is tried": [
        ("len(self._asked) < self._most:", "len(self._asked) <= self._most:")
    ],
    "records of another search are taken from a journal": [('if entry["search"] != self._tag:', "if False:")],
    "a damaged checkpoint is read": [("if seal != (_SEAL % hashlib.sha256(body).hexdigest()).encode():", "if False:")],
    "the journal is emptied before it was taken in": [
        (
            "            self._length = self._write()\n            os.ftruncate(descriptor, 0)\n",
            "            os.ftruncate(descriptor, 0)\n            self._length = self._write()\n",
        )
    ],
    "chains forget how many neighbors a structure has": [
        ("+ np.log(here[chain].n_neighbors / proposal.n_neighbors)", "+ 0.0")
    ],
    "the bound of completed rows lacks their entropy": [("return self.completed.entropy\n", "return 0.0\n")],
    "turning an edge gains what removing it does": [("c, p, gains[c, p] + gains[p, c]", "c, p, gains[c, p]")],
    "families are remembered whatever the child": [
        (
            "keys = [(child, parents | 1 << more if more >= 0 else parents) for more in further]",
            "keys = [(0, parents | 1 << more | 1 << child if more >= 0 else parents) for more in further]",
        )
    ],
    "candidates are pruned by twice their penalty": [
        ("self.per_parameter * network.n_free_parameters", "2.0 * self.per_parameter * network.n_free_parameters")
    ],
    "candidates that read in their own ways share a reading": [
        ("key = content([(name, params.get(name)) for name in sorted(self._varied)])", 'key = "any"')
    ],
    "every candidate reads for itself": [("if key not in self._by_key:", "if True:")],
    "what a fit gives up is gone for all": [("return replace(self, rows=replace(self.rows))", "return self")],
    "a family is scored with the parents it had before": [
        (
            "less = self.scores.score(mine, above & ~(1 << int(self._places[k])))",
            "less = self.scores.score(mine, above)",
        )
    ],
    "a family's concentration forgets the parent that is added": [
        (
            "rows = self._widths[more] * prod(",
            "rows = np.ones(len(more)) * prod(",
        )
    ],
    "edges turn though that closes a cycle": [("is_only_way = False", "is_only_way = True")],
    "a node in an order keeps parents that are behind it": [
        ("outside |= sets[k, word] & ~ahead[word]", "outside |= 0")
    ],
    "what an order's nodes lose that have one less ahead is forgotten": [
        ("ahead[k, home] &= ~bit\n            passed +=", "ahead[k, home] &= ~bit\n            passed += 0.0 *")
    ],
    "graphs that are good and were only valued are not listed": [("values > self._least_listed)", "values > np.inf)")],
    "scores of families stand for those of a fit that may be refused": [
        ("return has_options or estimator.method", "return estimator.method")
    ],
    "the score of measurements forgets how far means are from the prior's": [
        ("self.products + share * np.outer(self.mean, self.mean)", "self.products + 0.0 * share")
    ],
    "all sets of measurements have as many degrees of freedom": [("dof = dof + n - 1", "dof = dof + 1")],
    "the price of means of measurements is left out": [
        ("constant += 0.5 * n * log(self.mean_precision", "constant += 0.0 * log(self.mean_precision")
    ],
    "measurements whose priors differ have the score of one prior": [
        ("if prior is None or others or", "if prior is None or")
    ],
    "records of measurements stand for penalized likelihoods": [
        ("any(score.is_penalized_likelihood for score in summed)", "False")
    ],
    "a space without end is begun": [("if not problem.runner.is_limited and", "if False and")],
    "a sink may have parents above it only": [("rest = layer[inside] ^ (1 << sink)", "rest = layer[inside]")],
    "starts given row by row are those of any order of rows": [
        (
            'which = "fingerprint_in_order" if self._rows_have_places else "fingerprint"',
            'which = "fingerprint"',
        )
    ],
    "states in use count all candidates alike": [
        ("probability += share * np.bincount", "probability += 1.0 / len(kept) * np.bincount")
    ],
}
