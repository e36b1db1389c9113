"""The groups of data sets that benchmarks/accuracy.py measures: a section of docs/accuracy.md and of its appendix each."""

from __future__ import annotations

from dataclasses import dataclass

from accuracy_models import EBM, OURS, PEERS, TUNED


@dataclass(frozen=True)
class Group:
    """Data sets, the models that are compared on them, and what the pages say about them.

    Attributes
    ----------
    data : tuple of str
        Names of the data sets; empty for all files in the folder that CALIBAYES_DATA names.
    note : str
        Which data sets these are, and what they were used for.
    details : str
        What only the appendix says about the data sets.
    has_extras : bool
        Whether the large tables and the images are reported in this section.
    """

    name: str
    title: str
    note: str
    models: tuple[str, ...] = (*OURS, *PEERS)
    data: tuple[str, ...] = ()
    details: str = ""
    has_extras: bool = False

    @property
    def picture(self) -> str:
        """How the names of its rank diagrams begin."""
        return "accuracy" if self.name == "development" else f"accuracy-{self.name}"


DEVELOPMENT = Group(
    "development",
    "Development tables",
    "The defaults of `BayesClassifier` were chosen on data sets that are among these\n"
    "([record 24](decisions/0024-members-of-the-default.md)). Its lead here shows that it works as intended, not how far it\n"
    "leads on other data.",
    has_extras=True,
)
TUNED_PEERS = Group(
    "tuned",
    "Development tables, with tuned models",
    "The same data sets and folds. Three of the other models are also tuned by cross-validation with three inner folds:\n"
    "`C` of LogisticRegression (7 values), `C` and `gamma` of SVC (15 pairs), learning rate and maximum number of leaves of\n"
    "HistGB (4 pairs).",
    models=(*OURS, *PEERS, *TUNED),
)
EBM_PEER = Group(
    "ebm",
    "Small development tables, with the EBM",
    "The explainable boosting machine (EBM) of `interpret-core`, on the smaller development tables only, because it takes\n"
    "long to fit.",
    models=(*OURS, *PEERS, *EBM),
    data=("breast-cancer", "haberman", "iris", "lymphography", "parkinsons", "spectf", "vote", "zoo"),
)
ELSEWHERE = Group(
    "elsewhere",
    "KEEL tables",
    "The data sets of the KEEL collection that were not used when `BayesClassifier` was designed. Results on them were examined\n"
    "before and after later changes, which [record 26](decisions/0026-kernel-member-and-repeated-rows.md) and\n"
    "[record 27](decisions/0027-bandwidth-hierarchy.md) describe.",
)
FURTHER = Group(
    "further",
    "Tables from R packages",
    "Data sets that come with packages of R (digits: with scikit-learn). They were selected by subject before any model was\n"
    "run on them. [The measurements for record 27](lab/0027-bandwidth-hierarchy.md) list the choices that used some of their\n"
    "test rows, in averages.",
    details="""\
The column that is predicted:

- modeldata: ad_data Class, attrition Attrition, cells class, credit_data Status, hepatic_injury_qsar class, hpc_data class,
  leaf_id_flavia species, lending_club Class, mlc_churn churn, parabolic class, Sacramento type, stackoverflow Remote,
  steroidogenic_toxicity class, taxi tip, two_class_dat Class, wa_churn churn
- ISLR: Caravan Purchase, Default default, OJ Purchase, Weekly Direction (without Today)
- MASS: birthwt low (without bwt), crabs sp (without index), fgl type, shuttle use
- DAAG: ais sport, frogs pres.abs, headInjury clinically.important.brain.injury, leafshape arch, mifem outcome, monica outcome
- AER: HealthInsurance insurance, HMDA deny, PSID1976 participation (without hours and wages), SwissLabor participation
- carData: Arrests released, BEPS vote, Chile vote, Greene decision, Wells switch, WVS poverty
- openintro: email spam (without time); kernlab: musk, promotergene; caret: cox2, dhfr, mdrr, oil""",
)
GROUPS = {group.name: group for group in (DEVELOPMENT, TUNED_PEERS, EBM_PEER, ELSEWHERE, FURTHER)}
