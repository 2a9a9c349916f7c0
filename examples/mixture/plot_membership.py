"""
What drives cheating?
=====================

319 students were asked whether they had lied to avoid an exam or a paper, bought one, or copied in an exam. A mixture
sorts them into two classes. This page asks if grades say who is in which, and by how much.

.. topic:: References

   Dayton, C. M. (1998), *Latent Class Scaling Analysis*, Sage.
"""

# %%
# The fit
# -------
#
# The column that `Softmax` names drives the class. The four students without a grade are left out.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBMixture
from skvbem.datasets import load_cheating
from skvbem.emissions import Softmax

questions = ["LIEEXAM", "LIEPAPER", "FRAUD", "COPYEXAM"]
students = load_cheating(as_frame=True).data.dropna().astype(float)
students[questions] -= 1
model = VBMixture(2, emission="bernoulli", membership=Softmax("GPA"), random_state=0).fit(students)
print(model.summary(students, method="linear_response"))

# %%
# Is it worth its parameters?
# ---------------------------
#
# The same model with a constant in place of the grades has the same prior of the intercepts. Its bound is 5.8 nats
# lower.

constant = students.assign(GPA=1.0)
without = VBMixture(2, emission="bernoulli", membership=Softmax("GPA"), random_state=0).fit(constant)
print(f"with grades {model.lower_bound_:.2f}, without {without.lower_bound_:.2f} nats")

# %%
# Shares of classes by grade
# --------------------------
#
# Rows that hold a grade and nothing else are predicted from it. Bars are the classes of students as answers and grade
# together sort them.

cheating = model.parameters_["bernoulli"]["probabilities"][:, 3].argmax()
grades = pd.DataFrame(np.nan, index=range(41), columns=students.columns).assign(GPA=np.linspace(1, 5, 41))
sorted_by_answers = model.predict_proba(students)[:, cheating]

_, ax = plt.subplots(layout="constrained")
by_grade = pd.Series(sorted_by_answers).groupby(students["GPA"].to_numpy()).mean()
ax.bar(by_grade.index, by_grade, alpha=0.3, label="by answers and grade")
ax.plot(grades["GPA"], model.predict_proba(grades)[:, cheating], label="by grade alone")
ax.set(xlabel="grade, 1 to 5", ylabel="share of the cheating class", ylim=(0, 0.5))
ax.legend()
plt.show()
