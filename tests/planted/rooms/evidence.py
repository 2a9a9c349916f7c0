"""Errors in scores of the evidence."""

TESTS = (
    "evidence",
    "laws",
    "kernels/test_random.py",
    "emissions",
    "models/**/test_mixture*.py",
    "estimators/mixture/test_vb_mixture.py",
    "estimators/mixture/test_vb_mixture_blocks.py",
)

ERRORS = {
    "each start stands for all of the evidence": [
        (
            "log_weights = trace[-1] + starts.log_parts(mine, log_points, schedule)",
            "log_weights = trace[-1]",
        )
    ],
    "chains annealed back keep the labels of the posterior": [
        ("relabelings.draw(proposal.statistics[k], point, rng) for", "point for")
    ],
    "chains annealed back have the weights of the way back": [("(log_parts - work)", "(log_parts + work)")],
    "chains annealed back stand for all of the evidence": [("(log_parts - work)", "(-work)")],
    "labels of the starts are not made symmetric": [
        ("relabelings.n > 1 and self.fractions.any():", "relabelings.n > 10**9:")
    ],
    "weights are averaged as logarithms": [
        (
            "value = float(logsumexp([logsumexp(weights) - np.log(len(weights)) for weights in strata]))",
            "value = float(logsumexp([np.mean(weights) for weights in strata]))",
        )
    ],
    "the standard error is that of one weight": [
        (
            "variance += float(ratios.var() / m if",
            "variance += float(ratios.var() if",
        )
    ],
    "how components of a proposal differ is part of the error": [
        ("variance_of_mean(ratios, component) *", "variance_of_mean(ratios) *")
    ],
    "memory of a population is not looked at": [
        ("per_particle * n_particles,\n", "0.0 * per_particle * n_particles,\n")
    ],
    "batches are cut for the threads there are": [("max(-(-n // TUNING.tasks), TUNING.lanes // n_chains)", "n")],
    "particles are drawn again without regard to their weights": [
        (
            "systematic(np.exp(log_particle_weights[run]), rngs[run])",
            "systematic(np.full(n_particles, 1.0 / n_particles), rngs[run])",
        )
    ],
    "particles forget which of the first they descend from": [
        ("first_of, n_resamplings = first_of[chosen], n_resamplings + 1", "n_resamplings += 1")
    ],
    "more particles than the population holds see the first unit, and count as fewer": [
        (
            "log_weights, log_evidence = np.full(n_first, -np.log(n_first))",
            "log_weights, log_evidence = np.zeros(n_first)",
        )
    ],
    "hidden hyperparameters are certain where no row hides anything": [
        ("if evaluation.model.prior.hyperprior is not None:  # these", "if False:  # these")
    ],
    "annealed chains are believed that no population confirms": [
        ("if particles is None or not agree_unflagged(annealed, particles) or", "if particles is None or")
    ],
    "particles of growing data are not moved": [
        ("np.ones(TUNING.sweeps + 1), streams, points", "np.ones(1), streams, points")
    ],
    "samplers that disagree are not doubted": [("spread)), [evidence], [doubt])", "spread)), [evidence])")],
    "the value of a sampler in doubt is taken": [
        (
            "return _Answer(particles, [particles])",
            "return _Answer(check.first, [check.first])",
        )
    ],
    "a witness that knows nothing confirms": [("return error < TUNING.vague and abs(", "return abs(")],
    "a tail that looks light once is taken for light": [
        ("is_heavy = not are_nearly_equal(check.first)", "is_heavy = is_heavy_tailed(check.first)")
    ],
    "weights of a heavy tail are taken before what is surer": [
        ("key=lambda each: (is_heavy_tailed(each), stated_error(each))", "key=lambda each: (False, stated_error(each))")
    ],
    "a population far below a sure answer settles it": [
        (
            "if not is_precise or check.is_contradicted(particles) or is_above(check.first, particles):",
            "if not is_precise:",
        )
    ],
    "a part that a start missed is not missed": [("excess > TUNING.far_above * np.hypot(", "excess > 1e9 * np.hypot(")],
    "the share of a start forgets its other labels": [
        ("return log_densities[which, np.arange(len(which))] - ", "return self._log_densities(which, log_points)[0] - ")
    ],
    "particles alone find their part of the evidence": [
        ("else mean_of_particles(parts - log_mean_parts)", "else mean_of_particles(parts)")
    ],
    "an error forgets how far witnesses are": [
        ("max(stated_error(evidence) ** 2, *least, 0.0)", "stated_error(evidence) ** 2")
    ],
    "the densities that draws come from weigh more than one": [
        ("np.log((1 - TUNING.defense) / len(statistics))", "np.log(1 / len(statistics))")
    ],
    "backward chains start from any labels": [("starts.relabelings.n == 1:", "starts.relabelings.n >= 1:")],
    "certain rows are not counted in the collapsed bound": [
        (
            "marginals.known + np.bincount(target[certain], weights=weight[certain], minlength=n_targets)",
            "marginals.known + 0.0",
        )
    ],
    "what is mixed over relabelings forgets the labels at hand": [
        ("total = logsumexp([0.0, *np.concatenate(log_overlaps)])", "total = logsumexp(np.concatenate(log_overlaps))")
    ],
    "the entropy of the completions has the wrong sign": [
        ("completed.log_bd + completed.entropy,", "completed.log_bd - completed.entropy,")
    ],
    "the correction for identifiable dimensions has the wrong sign": [("0.5 * (free - d) *", "0.5 * (d - free) *")],
    "Laplace forgets the change of variables": [
        (
            "log_det += 2.0 * (log_prior - float(prior.log_density_as_prior(point)))",
            "log_det += log_prior - float(prior.log_density_as_prior(point))",
        )
    ],
    "BIC with the prior takes its density in natural parameters": [
        ('log_density_as_prior(point, basis="probability")', 'log_density_as_prior(point, basis="natural")')
    ],
    "the collapsed bound is scored by the draws that chose it": [
        ("CHOICE = 8\n    SCORE = 9\n", "CHOICE = 8\n    SCORE = 8\n")
    ],
    "draws gain without what is linear in them": [
        (
            "linear = log_evidence(statistics) + slope[drawn]",
            "linear = log_evidence(statistics) + 0.5 * slope[drawn]",
        )
    ],
}
