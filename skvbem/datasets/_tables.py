"""Tables that are part of the package, read as arrays or data frames.

A new data set is a file and a function with a docstring, which `_table` completes by what all loaders say alike:
parameters, what is returned, the license and, without one of its own, an example. The docstring is also the ``DESCR``.
"""

import csv
import functools
import inspect
import re
import textwrap
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from sklearn.utils import Bunch

from skvbem.datasets._generated import make_rows_with_moments

_GAPS, _STRINGS = "float with NaN where a cell is missing", "str (dtype object)"
_COUNTS = "counts of a published table, free to copy; cite the source."
_MEASUREMENTS = "published measurements, free to copy; cite the source."
_CC0 = "CC0 1.0, as the collection has it that the file is from; cite the source. See ``ATTRIBUTION.md``."
_PUBLIC_DOMAIN = "published measurements in the public domain; cite the source."
_UCI = "CC BY 4.0, UCI Machine Learning Repository; {donor}. See ``ATTRIBUTION.md``."
_SECTIONS = ("See Also", "Notes", "References", "Examples")


@dataclass(frozen=True)
class _Table:
    """A file of the package, and what its loader's docstring says of it."""

    filename: str
    shape: tuple[int, int]
    holds: str = "int"
    terms: str = _COUNTS
    donor: str | None = None  # who gave it to the repository, in place of terms
    target: str | None = None  # column with the class, kept apart from the data
    index: str | None = None  # column that names the rows
    rows: str = ""  # what the names of the rows are
    count: str | None = None  # column that says how often each row of the file stands in the table
    categorical: bool = True
    n_people: int | None = None  # the file holds covariances of so many people, for whom weighted rows stand

    def described(self, name, text):
        """The docstring of a loader: its own text, and the sections that the table decides."""
        opening, *parts = re.split(rf"^({'|'.join(_SECTIONS)})\n-+\n", text, flags=re.MULTILINE)
        sections = {
            "Parameters": self._parameters(),
            "Returns": self._returns(),
            "Examples": f">>> from skvbem.datasets import {name}\n>>> {name}().data.shape\n{self.shape}",
            "Notes": "",
        } | dict(zip(parts[::2], map(str.strip, parts[1::2])))
        terms = self.terms if self.donor is None else _UCI.format(donor=self.donor)
        sections["Notes"] = f"{sections['Notes']}\n\n{_wrapped(f'License: {terms}', '')}".strip()
        order = [section for section in ("Parameters", "Returns", *_SECTIONS) if section in sections]
        shown = [f"{section}\n{'-' * len(section)}\n{sections[section]}" for section in order]
        return "\n\n".join([opening.strip(), *shown]) + "\n"

    def _parameters(self):
        text = "as_frame : bool, default=False\n" + _wrapped(
            "Whether `data` is a pandas DataFrame"
            + " and `target` a Series" * bool(self.target)
            + " of dtype category" * self.categorical
            + f", indexed by {self.rows}," * bool(self.index)
            + f" instead of {'arrays' if self.target else 'an array'}."
        )
        alone = "return_X_y : bool, default=False\n    Whether to return ``(data, target)`` instead of the Bunch.\n"
        return alone * bool(self.target) + text

    def _returns(self):
        (n, d), more = self.shape, ""
        if self.target:
            more += f"`target` ({n},) of str, `target_names`, "
        if self.index:
            more += f"`index` ({self.rows}), "
        if self.n_people:
            more += f"`sample_weight` ({n},), `covariance` ({d}, {d}), "
        frame = "data and target in one data frame" if self.target else "the data frame"
        text = f"`data` ({n}, {d}) of {self.holds}, {more}`frame` ({frame}, or None), `feature_names`, `DESCR`, "
        bunch = f"bunch : :class:`~sklearn.utils.Bunch`\n{_wrapped(text + '`filename`, `data_module`.')}"
        return bunch + "\n(data, target) : tuple\n    If `return_X_y`." * bool(self.target)


def _wrapped(text, indent="    "):
    return textwrap.fill(text, 116, initial_indent=indent, subsequent_indent=indent)


def _table(filename, shape, **described):
    """The decorator that makes a documented signature the loader of a table."""
    table = _Table(filename, shape, **described)

    def loader_of(documented):
        @functools.wraps(documented)
        def loader(*args, **options):
            documented(*args, **options)  # which refuses what its signature does not name
            return _load(loader, table, **options)

        loader.__doc__ = table.described(documented.__name__, inspect.getdoc(documented) or "")
        return loader

    return loader_of


@_table("coleman_panel.csv", (3398, 4))
def load_coleman_panel(*, as_frame=False):
    """3398 schoolboys asked twice about the leading crowd: four binary answers, two hidden variables behind them.

    ====== ==================================================================
    A      membership in the leading crowd (the boy's own view), first wave
    B      attitude towards the leading crowd, first wave
    C      membership in the leading crowd, second wave
    D      attitude towards the leading crowd, second wave
    ====== ==================================================================

    1 is positive, 0 negative; no cell is missing. Two classes fit badly (likelihood-ratio chi-square 249.50 on 6
    degrees of freedom); two binary hidden variables, X -> A, C and Y -> B, D with X -> Y, fit well (1.27 on 4).

    References
    ----------
    .. [1] J. S. Coleman (1964). Introduction to Mathematical Sociology. Free Press.
    .. [2] L. A. Goodman (1974). Exploratory latent structure analysis using both identifiable and unidentifiable
       models. Biometrika 61, 215-231.

    Examples
    --------
    >>> from skvbem.datasets import load_coleman_panel
    >>> panel = load_coleman_panel()
    >>> panel.data.shape, panel.feature_names
    ((3398, 4), ['A', 'B', 'C', 'D'])
    """


@_table("carcinoma.csv", (118, 7))
def load_carcinoma(*, as_frame=False):
    """118 slides of the uterine cervix, each judged by seven pathologists.

    Columns A to G are the pathologists: 1 no carcinoma, 2 carcinoma. 20 of the 128 patterns occur; no cell is missing.
    The log-likelihood of 2, 3 and 4 classes is -317.2568, -293.705 and -289.2858.

    References
    ----------
    .. [1] J. R. Landis and G. G. Koch (1977). An application of hierarchical kappa-type statistics in the assessment
       of majority agreement among multiple observers. Biometrics 33, 363-374.
    .. [2] A. Agresti (2002). Categorical Data Analysis, 2nd edition, table 13.1. Wiley.
    """


@_table("stouffer_toby.csv", (216, 4))
def load_stouffer_toby(*, as_frame=False):
    """216 students, four situations in which a friend's claim conflicts with a duty.

    Columns A to D are the situations: 1 is the particularistic answer (for the friend), 2 the universalistic one. No
    cell is missing. The log-likelihood of 1, 2 and 3 classes is -543.6498, -504.4677 and -503.3011; two classes leave
    a likelihood-ratio chi-square of 2.72 on 6 degrees of freedom.

    References
    ----------
    .. [1] S. A. Stouffer and J. Toby (1951). Role conflict and personality. American Journal of Sociology 56, 395-406.
    .. [2] L. A. Goodman (1974). Exploratory latent structure analysis using both identifiable and unidentifiable
       models. Biometrika 61, 215-231.
    """


@_table("cheating.csv", (319, 5), holds=_GAPS)
def load_cheating(*, as_frame=False):
    """319 undergraduates, four questions about cheating, and the grade point average, of which four are missing.

    ======== ======================================================================================================
    LIEEXAM  ever lied to avoid taking an examination: 1 no, 2 yes
    LIEPAPER ever lied to avoid handing a term paper in on time: 1 no, 2 yes
    FRAUD    ever bought a term paper to hand in, or had a copy of an examination beforehand: 1 no, 2 yes
    COPYEXAM ever copied answers from a neighbor during an examination: 1 no, 2 yes
    GPA      grade point average: 1 below 3.00, 2 from 3.00, 3 from 3.26, 4 from 3.51, 5 from 3.76 to 4.00
    ======== ======================================================================================================

    Published solutions use the first four columns: the log-likelihood of two classes is -440.0271. The four students
    without GPA reported no cheating.

    References
    ----------
    .. [1] C. M. Dayton (1998). Latent Class Scaling Analysis, tables 3.4 and 7.1. Sage.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.datasets import load_cheating
    >>> cheating = load_cheating()
    >>> cheating.data.shape, int(np.isnan(cheating.data).sum())
    ((319, 5), 4)
    """


@_table("genderrole.csv", (592, 5))
def load_gender_role(*, as_frame=False):
    """592 respondents of a Dutch survey of 1985, five opinions on the roles of men and women.

    ====== ==================================================================================================
    Q1     women's liberation sets women against men
    Q2     it is better for a wife not to have a job, which always brings problems at home
    Q3     it is most natural that the man earns and the woman keeps house and raises the children
    Q4     a good education matters less for a girl than for a boy
    Q5     a woman is better suited to raise small children than a man
    ====== ==================================================================================================

    Answers are coded 0 and 1; no cell is missing.

    References
    ----------
    .. [1] T. Heinen (1996). Latent Class and Discrete Latent Trait Models: Similarities and Differences. Sage.
    .. [2] F. Galindo Garre and J. K. Vermunt (2006). Avoiding boundary estimates in latent class analysis by Bayesian
       posterior mode estimation. Behaviormetrika 33, 43-59.
    """


@_table("lsat6.csv", (1000, 5))
def load_lsat6(*, as_frame=False):
    """1000 candidates, five items of section 6 of the Law School Admission Test.

    Columns Item1 to Item5: 0 wrong, 1 right. No cell is missing. The log-likelihood of 2 classes is -2467.4055.

    References
    ----------
    .. [1] R. D. Bock and M. Lieberman (1970). Fitting a response model for n dichotomously scored items.
       Psychometrika 35, 179-197.
    """


@_table("sachs.csv", (853, 11), holds="float", terms=_CC0, categorical=False)
def load_sachs(*, as_frame=False):
    """853 human immune cells: amounts of eleven proteins and phospholipids of one signaling network, by flow cytometry.

    Columns raf, mek, plc, pip2, pip3, erk, akt, pka, pkc, p38 and jnk, in units of fluorescence, all above 0. Their
    logarithms are nearer to normal. No cell is missing. The cells were stimulated and nothing else was set. The
    published network of consensus has 20 edges; among them are raf -> mek -> erk, pka -> akt, pkc -> p38, pkc -> jnk
    and plc -> pip2.

    References
    ----------
    .. [1] K. Sachs, O. Perez, D. Pe'er, D. A. Lauffenburger and G. P. Nolan (2005). Causal protein-signaling networks
       derived from multiparameter single-cell data. Science 308, 523-529.
    """


@_table("lizards.csv", (409, 3), holds=_STRINGS)
def load_lizards(*, as_frame=False):
    """409 lizards of South Bimini: species, and diameter and height of the perch. Nothing is hidden.

    ======== ==================================================================
    Species  Sagrei (Anolis sagrei) or Distichus (Anolis distichus)
    Diameter of the perch: narrow or wide, divided at 4 inches
    Height   of the perch: low or high, divided at 4.75 feet
    ======== ==================================================================

    No cell is missing. The table serves to compare exact scores of structures.

    Notes
    -----
    The labels are those of the copy distributed with bnlearn. Copies of this table do not agree on which of the two
    heights is the upper one. No likelihood depends on the names; look at the source before you read anything into them.

    References
    ----------
    .. [1] T. W. Schoener (1968). The Anolis lizards of Bimini: resource partitioning in a complex fauna. Ecology 49,
       704-726.
    .. [2] S. E. Fienberg (1980). The Analysis of Cross-Classified Categorical Data, 2nd edition. MIT Press.

    Examples
    --------
    >>> from skvbem.datasets import load_lizards
    >>> lizards = load_lizards()
    >>> lizards.data.shape, lizards.data[0].tolist()
    ((409, 3), ['Sagrei', 'narrow', 'low'])
    """


@_table("berkeley_admissions.csv", (4526, 3), holds=_STRINGS, count="count")
def load_berkeley_admissions(*, as_frame=False):
    """4526 applicants to the six largest departments of the University of California, Berkeley, in 1973.

    ========== ==================================
    admitted   yes or no
    department A to F
    sex        male or female
    ========== ==================================

    Fewer women than men were admitted, and yet in no department are they much behind: they applied to the departments
    that admit few. No cell is missing.

    References
    ----------
    .. [1] P. J. Bickel, E. A. Hammel and J. W. O'Connell (1975). Sex bias in graduate admissions: data from Berkeley.
       Science 187, 398-404.

    Examples
    --------
    >>> from skvbem.datasets import load_berkeley_admissions
    >>> X = load_berkeley_admissions().data
    >>> X.shape, X[0].tolist()
    ((4526, 3), ['yes', 'A', 'male'])
    """


@_table("titanic.csv", (2201, 4), holds=_STRINGS, count="count")
def load_titanic(*, as_frame=False):
    """2201 people aboard the Titanic in 1912: class, sex, age and whether they survived.

    ======== =======================
    class    1st, 2nd, 3rd or crew
    sex      male or female
    age      child or adult
    survived no or yes
    ======== =======================

    No cell is missing.

    References
    ----------
    .. [1] R. J. MacG. Dawson (1995). The "unusual episode" data revisited. Journal of Statistics Education 3 (3).

    Examples
    --------
    >>> from skvbem.datasets import load_titanic
    >>> X = load_titanic().data
    >>> X.shape, X[0].tolist()
    ((2201, 4), ['1st', 'male', 'child', 'yes'])
    """


@_table("soybean_small.csv", (47, 35), donor="donor Doug Fisher", target="class")
def load_soybean_small(*, return_X_y=False, as_frame=False):
    """47 soybean plants, 35 coded attributes, and which of four diseases each one had.

    The table on which AutoClass and COBWEB were shown. The attributes and their codes are those of
    :func:`load_soybean_large`; 14 of the 35 are constant here. Classes: D1 diaporthe stem canker (10), D2 charcoal rot
    (10), D3 rhizoctonia root rot (10), D4 phytophthora rot (17). No cell is missing.

    References
    ----------
    .. [1] R. S. Michalski and R. L. Chilausky (1980). Learning by being told and learning from examples. International
       Journal of Policy Analysis and Information Systems 4, 125-161.

    Examples
    --------
    >>> from skvbem.datasets import load_soybean_small
    >>> X, y = load_soybean_small(return_X_y=True)
    >>> X.shape, y[0]
    ((47, 35), 'D1')
    """


@_table("soybean_large.csv", (683, 35), holds=_GAPS, donor="donors Ming Tan and Jeff Schlimmer", target="Class")
def load_soybean_large(*, return_X_y=False, as_frame=False):
    """683 soybean plants, 35 coded attributes with 2337 missing cells, and which of 19 diseases each one had.

    =============== ========================================================================================
    date            0 April, 1 May, 2 June, 3 July, 4 August, 5 September, 6 October
    plant.stand     0 normal, 1 less than normal
    precip          precipitation: 0 below, 1 at, 2 above the norm
    temp            temperature: 0 below, 1 at, 2 above the norm
    hail            0 yes, 1 no
    crop.hist       crop differs from last year's (0); is the same for 1, 2, or several years (1, 2, 3)
    area.dam        area damaged: 0 scattered, 1 low areas, 2 upper areas, 3 whole field
    sever           severity: 0 minor, 1 potentially severe, 2 severe
    seed.tmt        seed treatment: 0 none, 1 fungicide, 2 other
    germ            germination: 0 90-100 %, 1 80-89 %, 2 below 80 %
    plant.growth    0 normal, 1 abnormal
    leaves          0 normal, 1 abnormal
    leaf.halo       leaf spots, halos: 0 absent, 1 yellow, 2 not yellow
    leaf.marg       leaf spots, water-soaked margin: 0 yes, 1 no, 2 does not apply
    leaf.size       leaf spots: 0 below, 1 above 1/8 inch, 2 does not apply
    leaf.shread     leaf shredding: 0 absent, 1 present
    leaf.malf       leaf malformation: 0 absent, 1 present
    leaf.mild       mildew on leaves: 0 absent, 1 upper, 2 lower surface
    stem            0 normal, 1 abnormal
    lodging         0 yes, 1 no
    stem.cankers    0 absent, 1 below soil, 2 above soil, 3 above the second node
    canker.lesion   0 does not apply, 1 brown, 2 dark brown to black, 3 tan
    fruiting.bodies 0 absent, 1 present
    ext.decay       external decay: 0 absent, 1 firm and dry, 2 watery
    mycelium        0 absent, 1 present
    int.discolor    internal discoloration: 0 none, 1 brown, 2 black
    sclerotia       0 absent, 1 present
    fruit.pods      0 normal, 1 diseased, 2 few present, 3 does not apply
    fruit.spots     0 absent, 1 colored, 2 brown with black specks, 3 distorted, 4 does not apply
    seed            0 normal, 1 abnormal
    mold.growth     0 absent, 1 present
    seed.discolor   0 absent, 1 present
    seed.size       0 normal, 1 below normal
    shriveling      0 absent, 1 present
    roots           0 normal, 1 rotted, 2 galls or cysts
    =============== ========================================================================================

    562 rows are complete. The rows are the 307 and 376 of the two files of the source.

    References
    ----------
    .. [1] R. S. Michalski and R. L. Chilausky (1980). Learning by being told and learning from examples. International
       Journal of Policy Analysis and Information Systems 4, 125-161.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.datasets import load_soybean_large
    >>> X, y = load_soybean_large(return_X_y=True)
    >>> X.shape, int(np.isnan(X).sum()), len(set(y))
    ((683, 35), 2337, 19)
    """


@_table("zoo.csv", (101, 16), donor="donor Richard S. Forsyth", target="type", index="name", rows="the animals' names")
def load_zoo(*, return_X_y=False, as_frame=False):
    """101 animals, 16 attributes, and the class each belongs to.

    These columns are 1 if the animal has the attribute and 0 if not: hair, feathers, eggs, milk, airborne, aquatic,
    predator, toothed, backbone, breathes, venomous, fins, tail, domestic, catsize. The column legs is 0, 2, 4, 5, 6 or
    8. Classes: mammal (41), bird (20), fish (13), mollusc.et.al (10), insect (8), reptile (5), amphibian (4). No cell
    is missing.

    Examples
    --------
    >>> from skvbem.datasets import load_zoo
    >>> zoo = load_zoo()
    >>> zoo.data.shape, zoo.index[0], zoo.target[0]
    ((101, 16), 'aardvark', 'mammal')
    """


@_table("car.csv", (1728, 6), holds=_STRINGS, donor="donors Marko Bohanec and Blaz Zupan", target="class")
def load_car(*, return_X_y=False, as_frame=False):
    """All 1728 combinations of six attributes of a car, and how acceptable a decision model finds each.

    ======== ===============================================
    buying   buying price: low, med, high, vhigh
    maint    price of maintenance: low, med, high, vhigh
    doors    2, 3, 4, 5more
    persons  2, 4, more
    lug_boot luggage boot: small, med, big
    safety   low, med, high
    ======== ===============================================

    Classes: unacc (1210), acc (384), good (69), vgood (65). The design is a full factorial one, not a sample: without
    the class the six columns are exactly independent. No cell is missing.

    References
    ----------
    .. [1] M. Bohanec and V. Rajkovic (1988). Knowledge acquisition and explanation for multi-attribute decision
       making. 8th International Workshop on Expert Systems and their Applications, Avignon, 59-78.

    Examples
    --------
    >>> from skvbem.datasets import load_car
    >>> X, y = load_car(return_X_y=True)
    >>> X.shape, y[0]
    ((1728, 6), 'unacc')
    """


@_table("faithful.csv", (272, 2), holds="float", terms=_MEASUREMENTS, categorical=False)
def load_faithful(*, as_frame=False):
    """272 eruptions of the Old Faithful geyser: how long each lasted, and how long the wait for the next.

    Both columns, eruptions and waiting, are in minutes; no cell is missing.

    References
    ----------
    .. [1] A. Azzalini and A. W. Bowman (1990). A look at some data on the Old Faithful geyser. Applied Statistics 39,
       357-365.
    """


@_table("earthquakes.csv", (107, 1), index="year", rows="the years", categorical=False)
def load_earthquakes(*, as_frame=False):
    """Number of earthquakes of magnitude 7 or more in the world, in each year from 1900 to 2006: one sequence.

    Published minus log-likelihoods of stationary Poisson hidden Markov models with 1 to 4 states: 391.9189, 342.3183,
    329.4603, 327.8316.

    References
    ----------
    .. [1] W. Zucchini and I. L. MacDonald (2009). Hidden Markov Models for Time Series, table 1.1. Chapman and Hall.

    Examples
    --------
    >>> from skvbem.datasets import load_earthquakes
    >>> quakes = load_earthquakes()
    >>> quakes.data.shape, int(quakes.index[0]), int(quakes.data[0, 0])
    ((107, 1), 1900, 13)
    """


@_table("nile.csv", (100, 1), terms=_PUBLIC_DOMAIN, index="year", rows="the years", categorical=False)
def load_nile(*, as_frame=False):
    """Yearly flow of the Nile at Aswan from 1871 to 1970, in 10^8 cubic meters: one sequence.

    It fell at about 1899, when the first dam at Aswan was begun. The most likely variances of a level that walks at
    random, seen with noise, are 1469 and 15099, with a log-likelihood of -632.5377.

    References
    ----------
    .. [1] G. W. Cobb (1978). The problem of the Nile: conditional solution to a changepoint problem. Biometrika 65,
       243-251.
    .. [2] J. Durbin and S. J. Koopman (2012). Time Series Analysis by State Space Methods, 2nd edition. Oxford.

    Examples
    --------
    >>> from skvbem.datasets import load_nile
    >>> nile = load_nile()
    >>> nile.data.shape, int(nile.index[0]), int(nile.data[0, 0])
    ((100, 1), 1871, 1120)
    """


@_table("co2.csv", (526, 1), holds="float", terms=_PUBLIC_DOMAIN, index="month", rows="the months", categorical=False)
def load_co2(*, as_frame=False):
    """Monthly means of the carbon dioxide in the air at Mauna Loa from March 1958 to December 2001: one sequence.

    In parts per million; a month is named as in "1958-03". Five months without a measurement are missing. Means are
    those of the weeks of the source that begin in a month.

    References
    ----------
    .. [1] C. D. Keeling and T. P. Whorf (2004). Atmospheric CO2 concentrations derived from flask air samples at sites
       in the SIO network. Carbon Dioxide Information Analysis Center, Oak Ridge National Laboratory.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.datasets import load_co2
    >>> co2 = load_co2()
    >>> co2.data.shape, str(co2.index[0]), int(np.isnan(co2.data).sum())
    ((526, 1), '1958-03', 5)
    """


@_table("anes96.csv", (944, 10), terms=_PUBLIC_DOMAIN, categorical=False)
def load_anes96(*, as_frame=False):
    """944 voters of the American National Election Study of 1996: ordered answers on left and right, and the vote.

    ======== ==============================================================================
    popul    people of the place of the census, in thousands
    TVnews   days of the week on which news are seen on television, 0 to 7
    selfLR   where the voter stands, 1 extremely liberal to 7 extremely conservative
    ClinLR   where Bill Clinton stands, by the voter's impression
    DoleLR   where Bob Dole stands
    PID      party, 0 strong Democrat, 3 independent, 6 strong Republican
    age      years
    educ     education, 1 up to 8 grades, 3 high school, 5 college degree, 7 doctor's degree
    income   of the household, 24 classes, 1 below 3 000 dollars, 24 from 105 000 dollars
    vote     expected vote, 0 Clinton, 1 Dole
    ======== ==============================================================================

    No cell is missing.

    References
    ----------
    .. [1] The American National Election Studies (1996). electionstudies.org.
    """


@_table("fetal_lamb.csv", (240, 1), categorical=False)
def load_fetal_lamb(*, as_frame=False):
    """Number of movements of a fetal lamb in each of 240 consecutive intervals of 5 seconds: one sequence.

    Published log-likelihoods: -201.04 (Poisson), -177.48 (Poisson hidden Markov model with two states).

    References
    ----------
    .. [1] B. G. Leroux and M. L. Puterman (1992). Maximum-penalized-likelihood estimation for independent and
       Markov-dependent mixture models. Biometrics 48, 545-558.

    Examples
    --------
    >>> from skvbem.datasets import load_fetal_lamb
    >>> lamb = load_fetal_lamb()
    >>> lamb.data.shape, int(lamb.data.sum())
    ((240, 1), 86)
    """


@_table("ability_tests.csv", (7, 6), holds="float", terms=_MEASUREMENTS, categorical=False, n_people=112)
def load_ability_tests(*, as_frame=False):
    """Six tests of ability that 112 people took, of which only covariances were printed: weighted rows with these.

    ======= ===============================================
    general a measure of general intelligence without words
    picture a picture-completion test
    blocks  block design
    maze    mazes
    reading reading comprehension
    vocab   vocabulary
    ======= ===============================================

    The rows are not people: they are seven rows of one weight, 16, with mean 0 and the printed covariances (divisor n).
    Whatever depends on rows through moments alone is as it would be for the people. Published, maximum likelihood of
    one and of two factors: chi-square 75.18 on 9 and 6.11 on 4 degrees of freedom.

    See Also
    --------
    make_rows_with_moments : rows of other means and covariances.

    References
    ----------
    .. [1] G. A. Smith and G. Stanley (1983). Clocking g: relating intelligence and measures of timed performance.
       Intelligence 7, 353-368.
    .. [2] D. J. Bartholomew (1987). Latent Variable Models and Factor Analysis. Griffin.

    Examples
    --------
    >>> from skvbem.datasets import load_ability_tests
    >>> tests = load_ability_tests()
    >>> tests.data.shape, float(tests.sample_weight.sum()), float(tests.covariance[0, 0])
    ((7, 6), 112.0, 24.641)
    """


def load_alice():
    """Alice's Adventures in Wonderland from the heading of chapter I on, folded to a-z and space.

    Letters are lower case; whatever lies between words is one space. Beal's thesis, section 3.5, reads such text
    forwards and backwards to compare hidden Markov models.

    Returns
    -------
    text : str
        134919 characters.

    Notes
    -----
    License: public domain.

    References
    ----------
    .. [1] L. Carroll (1865). Alice's Adventures in Wonderland. Macmillan.

    Examples
    --------
    >>> from skvbem.datasets import load_alice
    >>> text = load_alice()
    >>> text[31:53], len(set(text))
    ('alice was beginning to', 27)
    """
    return _read_text("alice_27symbols.txt").rstrip("\n")


def _load(loader, table, return_X_y=False, as_frame=False):
    columns = _read_columns(table.filename)
    if table.count:
        counts = columns.pop(table.count)
        columns = {name: np.repeat(column, counts) for name, column in columns.items()}
    more = {}
    if table.n_people:
        covariance = np.column_stack(list(columns.values()))
        weighted = make_rows_with_moments(np.zeros(len(covariance)), covariance, table.n_people)
        columns = dict(zip(columns, weighted.data.T))
        more = {"sample_weight": weighted.sample_weight, "covariance": covariance}
    index = columns.pop(table.index) if table.index else None
    frame = _frame(columns, index, table, loader.__name__) if as_frame else None
    target = columns.pop(table.target) if table.target else None
    bunch = Bunch(
        data=frame[list(columns)] if as_frame else np.column_stack(list(columns.values())),
        frame=frame,
        feature_names=list(columns),
        DESCR=inspect.getdoc(loader) or "",
        filename=table.filename,
        data_module="skvbem.datasets",
        **more,
    )
    if target is not None:
        bunch.target = frame[table.target] if as_frame else target
        bunch.target_names = np.unique(target)
    if index is not None:
        bunch.index = index
    return (bunch.data, bunch.target) if return_X_y else bunch


def _read_text(filename):
    return files("skvbem.datasets").joinpath(filename).read_text(encoding="utf-8")


def _read_columns(filename):
    header, *rows = csv.reader(_read_text(filename).splitlines())
    return {name: _column(cells) for name, cells in zip(header, zip(*rows))}


def _column(cells):
    # int if every cell is one, float if every cell that is not missing is a number, else the strings themselves
    if all(re.fullmatch("-?[0-9]+", cell) for cell in cells):
        return np.array(cells).astype(np.int64)
    try:
        return np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        return np.array([cell or np.nan for cell in cells], dtype=object)


def _frame(columns, index, table, name):
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            f"{name} with as_frame=True needs pandas, which is not installed. Install pandas, or call {name}() for "
            "arrays."
        ) from error
    if table.categorical:
        columns = {name: pd.Categorical(column, categories=_categories(column)) for name, column in columns.items()}
    return pd.DataFrame(columns, index=None if index is None else pd.Index(index, name=table.index))


def _categories(column):
    # NaN differs from itself: that drops the missing cells, of floats and of objects alike.
    levels = np.unique(column[column == column])
    return levels.astype(np.int64) if levels.dtype.kind == "f" else levels
