// What a search finds first: answers to questions and guides, then studies and theory, then what changed.
// The numbers below `score` are those of Sphinx.
const FIRST = [["faq", 30], ["quick_start", 20], ["user_guide/", 15], ["coming_from/", 10], ["changes", -20]];

var Scorer = {
  score: ([page, , , , score]) => score + (FIRST.find(([begins]) => page.startsWith(begins)) ?? ["", 0])[1],
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
