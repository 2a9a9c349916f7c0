/* Variational Bayesian EM for a bipartite network: two binary latents h0, h1 and four five-valued leaves, Dirichlet(1)
 * on every row of every table. The plain loop one would write for this network and nothing else: an opponent to time
 * against, not a part of the library.
 *
 * The joint latent state is s = 2 h0 + h1. A leaf's table has one row per configuration of its parents; parents[j] is
 * a bit mask (1: h0, 2: h1). A latent without children is left out of the model: its state stays 0 and its table
 * costs nothing.
 *
 * Leaves are handled in two pairs, so that a datum costs two products of four numbers instead of four:
 * f_i(s) = A[y0 y1][s] B[y2 y3][s]. Data sorted by (y0, y1) keep one row of A in hand. */

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LATENTS = 2, LEAVES = 4, CARD = 5, STATES = 4, PAIRS = CARD * CARD };

typedef struct {
    double latent[LATENTS][2];
    double leaf[LEAVES][STATES][CARD]; /* the first n_configs rows are in use */
} Tables;

typedef struct {
    int has_children[LATENTS];
    int n_configs[LEAVES];
    int config[LEAVES][STATES]; /* joint latent state -> row of the leaf's table */
} Network;

enum form { VB, MAP, ML };

typedef struct {
    int n_rows;
    const int32_t *first; /* [n_rows] 5 y0 + y1, ascending */
    const int32_t *second; /* [n_rows] 5 y2 + y3 */
    const double *weight; /* [n_rows] how often the row occurs */
} Rows;

/* digamma(x), and ln Gamma(x) = *log_gamma - ln(*shift) with the caller's running product *shift. x >= 1.
 * Recurrence up to x >= 8, then the asymptotic series; both share one logarithm and the product of the recurrence. */
static inline double digamma_log_gamma(double x, double *log_gamma, double *shift)
{
    double product = 1.0, derivative = 0.0;
    while (x < 8.0) {
        derivative = derivative * x + product;
        product *= x;
        x += 1.0;
    }
    const double log_x = log(x), r = 1.0 / x, r2 = r * r;
    *shift *= product;
    *log_gamma += (x - 0.5) * log_x - x + 0.91893853320467274178
                + r * (1.0 / 12 - r2 * (1.0 / 360 - r2 * (1.0 / 1260 - r2 * (1.0 / 1680 - r2 * (1.0 / 1188
                - r2 * (691.0 / 360360))))));
    return log_x - 0.5 * r
         - r2 * (1.0 / 12 - r2 * (1.0 / 120 - r2 * (1.0 / 252 - r2 * (1.0 / 240 - r2 * (1.0 / 132
         - r2 * (691.0 / 32760 - r2 * (1.0 / 12)))))))
         - derivative / product;
}

/* One Dirichlet: exp(E[ln theta_k]) for concentrations 1 + count[k]; returns its KL divergence from Dirichlet(1). */
static double refresh(int card, const double *count, double *table)
{
    double total = card, digamma[CARD], sum_log_gamma = 0.0, total_log_gamma = 0.0, shift = 1.0, total_shift = 1.0;
    double inner = 0.0;
    for (int k = 0; k < card; k++) {
        digamma[k] = digamma_log_gamma(1.0 + count[k], &sum_log_gamma, &shift);
        inner += count[k] * digamma[k];
        total += count[k];
    }
    const double digamma_total = digamma_log_gamma(total, &total_log_gamma, &total_shift);
    for (int k = 0; k < card; k++)
        table[k] = exp(digamma[k] - digamma_total);
    const double log_gamma_card = card == 2 ? 0.0 : 3.1780538303479456197; /* ln 1!, ln 4! */
    return total_log_gamma - sum_log_gamma + log(shift / total_shift) - log_gamma_card
         + inner - (total - card) * digamma_total;
}

/* One table row at its mode: pseudo = 1 for the mode of the posterior in natural parameters, 0 for maximum likelihood.
 * Returns minus the log density that the prior adds, pseudo * sum ln theta. */
static double mode(int card, double pseudo, const double *count, double *table)
{
    double total = 0.0, penalty = 0.0;
    for (int k = 0; k < card; k++)
        total += count[k] + pseudo;
    for (int k = 0; k < card; k++) {
        table[k] = total > 0.0 ? (count[k] + pseudo) / total : 1.0 / card;
        if (pseudo > 0.0)
            penalty -= pseudo * log(table[k]);
    }
    return penalty;
}

static double update(enum form form, int card, const double *count, double *table)
{
    return form == VB ? refresh(card, count, table) : mode(card, form == MAP, count, table);
}

static double maximize(enum form form, const Network *net, const Tables *count, Tables *table)
{
    double penalty = 0.0;
    for (int h = 0; h < LATENTS; h++) {
        if (net->has_children[h])
            penalty += update(form, 2, count->latent[h], table->latent[h]);
        else
            table->latent[h][0] = 1.0, table->latent[h][1] = 0.0;
    }
    for (int j = 0; j < LEAVES; j++)
        for (int c = 0; c < net->n_configs[j]; c++)
            penalty += update(form, CARD, count->leaf[j][c], table->leaf[j][c]);
    return penalty;
}

/* Expected counts of every table; returns sum_i w_i ln Z_i. */
static double expect(const Network *net, const Rows *rows, const Tables *table, Tables *count)
{
    double A[PAIRS][STATES], B[PAIRS][STATES], NA[PAIRS][STATES], NB[PAIRS][STATES];
    double log_normalizer = 0.0;

    for (int s = 0; s < STATES; s++) {
        const double root = table->latent[0][s >> 1] * table->latent[1][s & 1];
        const double *t0 = table->leaf[0][net->config[0][s]], *t1 = table->leaf[1][net->config[1][s]];
        const double *t2 = table->leaf[2][net->config[2][s]], *t3 = table->leaf[3][net->config[3][s]];
        for (int p = 0; p < CARD; p++)
            for (int q = 0; q < CARD; q++) {
                A[CARD * p + q][s] = root * t0[p] * t1[q];
                B[CARD * p + q][s] = t2[p] * t3[q];
            }
    }
    memset(NA, 0, sizeof NA);
    memset(NB, 0, sizeof NB);
    for (int i = 0; i < rows->n_rows;) {
        const int a = rows->first[i];
        const double a0 = A[a][0], a1 = A[a][1], a2 = A[a][2], a3 = A[a][3];
        double n0 = 0.0, n1 = 0.0, n2 = 0.0, n3 = 0.0;
        for (; i < rows->n_rows && rows->first[i] == a; i++) {
            const double *b = B[rows->second[i]];
            double *n = NB[rows->second[i]];
            const double z = a0 * b[0] + a1 * b[1] + a2 * b[2] + a3 * b[3], r = rows->weight[i] / z;
            log_normalizer += rows->weight[i] * log(z);
            n0 += r * b[0], n1 += r * b[1], n2 += r * b[2], n3 += r * b[3];
            n[0] += r * a0, n[1] += r * a1, n[2] += r * a2, n[3] += r * a3;
        }
        NA[a][0] = a0 * n0, NA[a][1] = a1 * n1, NA[a][2] = a2 * n2, NA[a][3] = a3 * n3;
    }
    memset(count, 0, sizeof *count);
    for (int s = 0; s < STATES; s++) {
        double *n0 = count->leaf[0][net->config[0][s]], *n1 = count->leaf[1][net->config[1][s]];
        double *n2 = count->leaf[2][net->config[2][s]], *n3 = count->leaf[3][net->config[3][s]];
        double total = 0.0;
        for (int p = 0; p < CARD; p++)
            for (int q = 0; q < CARD; q++) {
                const double na = NA[CARD * p + q][s], nb = NB[CARD * p + q][s] * B[CARD * p + q][s];
                n0[p] += na, n1[q] += na;
                n2[p] += nb, n3[q] += nb;
                total += na;
            }
        count->latent[0][s >> 1] += total;
        count->latent[1][s & 1] += total;
    }
    return log_normalizer;
}

static Network network(const int32_t *parents)
{
    Network net = {{0}, {0}, {{0}}};
    for (int j = 0; j < LEAVES; j++) {
        const int h0 = parents[j] & 1, h1 = parents[j] >> 1;
        net.has_children[0] |= h0;
        net.has_children[1] |= h1;
        net.n_configs[j] = (1 + h0) * (1 + h1);
        for (int s = 0; s < STATES; s++)
            net.config[j][s] = h0 && h1 ? s : h0 ? s >> 1 : h1 ? s & 1 : 0;
    }
    return net;
}

/* n_starts fits of a form from n_starts point tables; each stops when one step gains less than rtol |F|, or after
 * max_iter steps. Out: bound [n_starts], n_iter [n_starts]. */
void bare_vbem(int32_t n_rows, const int32_t *first, const int32_t *second, const double *weight,
               const int32_t *parents, int32_t form, int32_t n_starts, const Tables *start, double rtol,
               int32_t max_iter, double *bound, int32_t *n_iter)
{
    const Rows rows = {n_rows, first, second, weight};
    const Network net = network(parents);
    Tables table, count;
    for (int k = 0; k < n_starts; k++) {
        double F = -INFINITY, gain = INFINITY;
        int it = 0;
        table = start[k];
        for (int h = 0; h < LATENTS; h++)
            if (!net.has_children[h])
                table.latent[h][0] = 1.0, table.latent[h][1] = 0.0;
        expect(&net, &rows, &table, &count);
        while (it < max_iter && !(gain < rtol * fabs(F))) {
            const double penalty = maximize(form, &net, &count, &table);
            const double new = expect(&net, &rows, &table, &count) - penalty;
            gain = new - F;
            F = new;
            it++;
        }
        bound[k] = F;
        n_iter[k] = it;
    }
}
