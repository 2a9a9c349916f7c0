/* Sets of rows as bits, 64 rows to a word, and the weight of what two sets have in common: a word and a population count
 * stand for 64 additions. A row stands once for each binary digit of its weight, a whole number: positions of one digit
 * are a plane, of whole words. */
#ifndef SKVBEM_BITSETS_H
#define SKVBEM_BITSETS_H

#include <stdint.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define SKVBEM_POPCOUNT __attribute__((target_clones("popcnt", "default")))
#else
#define SKVBEM_POPCOUNT
#endif

/* Split each of some sets by parts of all rows; how many sets there are then, -1 where these would be more than `most`.
 * Empty ones are left out unless `keeps_empty`. */
static intptr_t skvbem_split_sets(intptr_t n_sets, intptr_t n_words, const uint64_t *restrict sets, intptr_t n_parts,
                                  const uint64_t *restrict parts, int keeps_empty, intptr_t most,
                                  uint64_t *restrict finer) {
    intptr_t n = 0;
    for (intptr_t set = 0; set < n_sets; set++)
        for (intptr_t part = 0; part < n_parts; part++) {
            if (n == most) return -1;
            const uint64_t *a = sets + set * n_words, *b = parts + part * n_words;
            uint64_t *both = finer + n * n_words, any = 0;
            for (intptr_t word = 0; word < n_words; word++) {
                both[word] = a[word] & b[word];
                any |= both[word];
            }
            n += keeps_empty || any != 0;
        }
    return n;
}

/* List the words of each of some sets that are not empty; `first` has where those of each set begin, and where all end. */
static void skvbem_list_words(intptr_t n_sets, intptr_t n_words, const uint64_t *restrict sets, intptr_t *restrict first,
                              int32_t *restrict place, uint64_t *restrict listed) {
    intptr_t n = 0;
    for (intptr_t set = 0; set < n_sets; set++) {
        first[set] = n;
        for (intptr_t word = 0; word < n_words; word++) {
            const uint64_t bits = sets[set * n_words + word];
            place[n] = (int32_t) word;
            listed[n] = bits;
            n += bits != 0;
        }
    }
    first[n_sets] = n;
}

/* The weight of what each of some sets, of listed words, has in common with another. */
SKVBEM_POPCOUNT
static void skvbem_common_weights(intptr_t n_sets, const intptr_t *restrict first, const int32_t *restrict place,
                                  const uint64_t *restrict listed, const uint64_t *restrict other,
                                  const unsigned char *restrict digit, double *restrict weights) {
    for (intptr_t set = 0; set < n_sets; set++) {
        int64_t total = 0;
        for (intptr_t k = first[set]; k < first[set + 1]; k++)
            total += (int64_t) __builtin_popcountll(listed[k] & other[place[k]]) << digit[place[k]];
        weights[set] = (double) total;
    }
}

#endif
