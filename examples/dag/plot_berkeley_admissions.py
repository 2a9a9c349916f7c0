"""
Were women refused? Networks without directions
===============================================

In 1973 the graduate school of Berkeley admitted 45 % of the men who applied to its six largest departments, and 30 % of
the women. Was that the doing of those who admit? The table has three columns: whether a person was admitted, the
department, and the sex. A network without directions says which columns depend on each other, and which are
independent once others are known. There are eight such networks, and each has an evidence in closed form.
"""

# %%
# The paradox
# -----------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import ChordalSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.datasets import load_berkeley_admissions
from skvbem.plotting import DAGDisplay

people = load_berkeley_admissions(as_frame=True).data
was_admitted = people["admitted"] == "yes"
print(f"admitted: {was_admitted[people['sex'] == 'male'].mean():.0%} of the men,", end=" ")
print(f"{was_admitted[people['sex'] == 'female'].mean():.0%} of the women")
rates = was_admitted.groupby([people["department"], people["sex"]], observed=True).mean().unstack()
applied = people.groupby(["department", "sex"], observed=True).size().unstack()
print(pd.concat({"admitted": rates.round(2), "applied": applied}, axis=1))

# %%
# In most departments women fared better than men. But women applied to departments that admit few.
#
# All networks
# ------------
# :class:`~skvbem.ChordalSpace` lists the networks. The prior ``"bdeu"`` spreads one made-up person over all cells of
# the table; under it the evidence belongs to the network, whatever directions its edges are given.

search = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), ChordalSpace(people.columns), random_state=0).fit(people)
results = pd.DataFrame(
    {
        "network": [str(setting["structure"]) for setting in search.cv_results_["params"]],
        "evidence": search.cv_results_["mean_test_score"],
        "probability": search.structure_posterior_,
    }
).sort_values("evidence", ascending=False)
print(results.to_string(index=False, float_format=lambda value: f"{value:.2f}"))

# %%
# The best network has an edge between admission and department, one between department and sex, and none between
# admission and sex: whoever knows the department learns nothing more from the sex. The network with all edges is less
# probable by 19.8 nats, a factor of four hundred million.

DAGDisplay.from_search(search)
plt.show()

# %%
# What the network says
# ---------------------
# The tables of its cliques are all that it needs. Questions are answered from them.

model = search.best_estimator_
for table in model.summary().tables[-2:]:
    print(table.title)
    print(pd.DataFrame(table.values, table.rows, table.columns).round(3).to_string(), "\n")

departments = model.categories_[1]
by_network = [model.query("admitted", {"department": d, "sex": "female"})["admitted":"yes"] for d in departments]
fig, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
place = np.arange(len(departments))
ax.bar(place - 0.2, rates["male"], 0.4, label="men, observed", color="#b8c4ce")
ax.bar(place + 0.2, rates["female"], 0.4, label="women, observed", color="#2f6ea5")
ax.plot(place, by_network, "k_", markersize=30, label="either, by the network")
ax.set_xticks(place, departments)
ax.set(xlabel="department", ylabel="share admitted", title="One rate for each department is enough")
ax.legend(handlelength=3)
plt.show()

# %%
# One department stands apart
# ---------------------------
# The network treats all departments alike. Is there one that does not fit? For each of them by itself there are two
# networks: admission depends on sex, or it does not.

for department, some in people.groupby("department", observed=True):
    two = some[["admitted", "sex"]].astype(object)
    alone = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), ChordalSpace(two.columns), random_state=0).fit(two)
    edge = alone.edge_probabilities_["parent":"admitted", "child":"sex"]
    print(f"department {department}: admission depends on sex with probability {edge:.3f}")

# %%
# In department A it does: there 82 % of the women were admitted, and 62 % of the men. A network of all columns has
# no edge for that alone. Sex would have to matter everywhere, and five departments say that it does not.
