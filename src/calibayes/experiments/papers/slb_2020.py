"""Sparse log-bivariate densities: Tables 1 to 4 with their box plots, and what the default recipe gains."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from calibayes.estimators.kernel_naive_bayes import KernelNB
from calibayes.estimators.sparse_log_bivariate import LogUnivariateClassifier, SparseLogBivariateClassifier
from calibayes.estimators.tree import TreeAugmentedNB
from calibayes.experiments.claims import Claim, best, better, no_worse
from calibayes.experiments.experiment import Paper
from calibayes.experiments.protocols.data_entry import DataEntry
from calibayes.experiments.protocols.density_rivals import KernelDensityBayes
from calibayes.experiments.protocols.networks import Forests, Networks
from calibayes.experiments.results.fold_table import FoldTable
from calibayes.experiments.results.network_table import NetworkTable

NAME = "slb-2020"

SMALL = (
    DataEntry("blood-transfusion", "blood"),
    DataEntry("climate-model", "climate"),
    DataEntry("ionosphere", "ionosphere", drop=("x1", "x2")),
    DataEntry("liver-disorders", "liver"),
    DataEntry("parkinsons", "parkinson"),
    DataEntry("diabetes", "pima"),
    DataEntry("spectf", "spectf"),
    DataEntry("wdbc", "WI diag"),
)
"""The paper's ionosphere has 32 columns: without the one that is constant and the one of two values."""
LARGER = (
    DataEntry("hill-valley", "hill-valley"),
    DataEntry("hill-valley-noise", "hill-valley with noise"),
    DataEntry("ringnorm", "ringnorm"),
    DataEntry("pulsar", "pulsar"),
)

RECIPE: dict[str, Any] = SparseLogBivariateClassifier.paper().get_params(deep=False)
UNIVARIATE: dict[str, Any] = {
    name: value for name, value in RECIPE.items() if name in LogUnivariateClassifier().get_params(deep=False)
}

RIVALS: dict[str, Any] = {
    "TAN": KernelDensityBayes(trees=True),
    "NB": KernelDensityBayes(),
    "RF": RandomForestClassifier(50, random_state=0),
    "SVM": make_pipeline(StandardScaler(), SVC(C=1.0, gamma="auto")),
    "5NN": make_pipeline(StandardScaler(), KNeighborsClassifier(5)),
}
"""With the defaults of the paper's R packages. NB and TAN have the class prior and the densities of SLB."""
MODELS: dict[str, Any] = {
    "SLB": SparseLogBivariateClassifier.paper(),
    "LU": LogUnivariateClassifier(**UNIVARIATE),
    **RIVALS,
}

LU_IS_WRONG = (
    "The LU column as printed (near 50 everywhere) must be an error: naive Bayes on the same densities, a special case "
    "of its model, is printed far below."
)
CANNOT_REJECT = (
    "Over five folds a two-sided signed-rank test cannot give a p-value below 0.0625, so at the paper's level 0.05 / 6 "
    "nothing could be told apart; here it runs over the fifteen folds of three seeds, which are not independent."
)

FOUR = FoldTable(
    NAME,
    "4",
    "Balanced error in percent, stratified 5-fold, mean over fold seeds",
    SMALL + LARGER,
    MODELS,
    reasons={
        "liver": "SLB: near chance between its variants; not explained",
    },
    reason="the paper's splits, bandwidths of pairs and threshold are not known",
    notes=(LU_IS_WRONG, CANNOT_REJECT),
    claims=(
        Claim("SLB is best or on par with the best", "13 of 16", best("SLB")),
        Claim("SLB is better than TAN or on par with it", "15 of 16", no_worse("SLB", "TAN")),
        Claim(
            "pairs help: SLB is better than LU",
            "16 of 16 by their means, against an LU column that must be wrong",
            better("SLB", "LU"),
        ),
    ),
)

BALANCED = FoldTable(
    NAME,
    "4-balanced",
    "The recipe of the paper and the default, class-weighted both: balanced error in percent",
    SMALL,
    {
        "SLB, paper": SparseLogBivariateClassifier.paper(class_weight="balanced"),
        "SLB, default": SparseLogBivariateClassifier(class_weight="balanced"),
        "SLB, default, hinge": SparseLogBivariateClassifier(class_weight="balanced", loss="hinge"),
        "LU, default": LogUnivariateClassifier(class_weight="balanced"),
        "SVM, weighted": make_pipeline(StandardScaler(), SVC(class_weight="balanced")),
        "KernelNB, RC": KernelNB(class_weight="balanced"),
        "TreeAugmentedNB, RC": TreeAugmentedNB(class_weight="balanced"),
    },
    notes=(
        "The default's floor, its normal scores and its raw columns were settled on these sets, over the same folds.",
    ),
    claims=(
        Claim(
            "rows left out of their own densities (the default) do better than densities of their own training rows",
            "not in the paper",
            better("SLB, default", "SLB, paper"),
        ),
    ),
)

PAIRLESS = {"SLB-": SparseLogBivariateClassifier.paper(selection=None)}

ONE = NetworkTable(
    NAME,
    "1",
    "Forests: error in percent",
    {"normal": Forests(), "complex": Forests(complex=True)},
    MODELS,
    reason="graphs are drawn as the generator here says; the printed complex distribution keeps the dependence, so it "
    "cannot give the printed errors",
    claims=(
        Claim("TAN is best or on par with the best", "10 of 10 with normal marginals", best("TAN")),
        Claim("SLB is best or on par with the best", "not said", best("SLB")),
    ),
)
TWO = NetworkTable(
    NAME,
    "2",
    "Networks with three parents: error in percent",
    {
        f"{marginals} {common}": Networks(complex=marginals == "complex", shared=share)
        for marginals in ("normal", "complex")
        for common, share in (("none", 0.0), ("third", 1 / 3))
    },
    PAIRLESS | MODELS,
    reason="graphs are drawn as the generator here says",
    claims=(
        Claim("SLB is best or on par with the best", "40 of 40", best("SLB")),
        Claim("TAN is on par with SLB", "5 of 40", no_worse("TAN", "SLB")),
        Claim("selection helps: SLB is better than SLB-", "mostly for few rows", better("SLB", "SLB-")),
    ),
)
THREE = NetworkTable(
    NAME,
    "3",
    "Networks: dependence by HSIC and by Pearson's correlation, error in percent",
    {"normal": Networks(), "complex": Networks(complex=True)},
    {
        "SLB (HSIC)": SparseLogBivariateClassifier.paper(),
        "SLB (Pearson)": SparseLogBivariateClassifier.paper(measure="pearson"),
    },
    reason="graphs are drawn as the generator here says",
    claims=(
        Claim("HSIC is better than Pearson's correlation", "2 of 20", better("SLB (HSIC)", "SLB (Pearson)")),
        Claim(
            "HSIC is no worse than Pearson's correlation", "20 of 20", no_worse("SLB (HSIC)", "SLB (Pearson)")
        ),
    ),
)

PAPER = Paper(
    NAME,
    "Tenzer, Moscovich, Dorn, Nadler, Spiegelman (2020), Beyond trees: classification with sparse pairwise dependencies",
    (FOUR, BALANCED, ONE, TWO, THREE),
    "SLB and LU have the paper's recipe as far as it is known (`SparseLogBivariateClassifier.paper()`); how graphs are "
    "drawn in Tables 1 to 3 is written down in `calibayes.experiments.protocols.networks`. Data sets that are not at "
    "hand: ozone, sonar, WI prog, vertebral.",
)
