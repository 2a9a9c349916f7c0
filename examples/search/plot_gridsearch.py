"""
Inside scikit-learn's own tools
===============================

All estimators of this library are scikit-learn's kind. ``GridSearchCV``, ``Pipeline`` and ``cross_val_score`` take them
as they take any other, and :class:`~skvbem.StructureSearchCV` in turn looks like ``GridSearchCV``. When to take which?
It depends on the question. Here are three questions about the same 118 slides.
"""

# %%
# Which number of classes predicts best?
# --------------------------------------
# Seven pathologists judged 118 slides: carcinoma or not. How many kinds of slides are there? The estimator's ``score``
# is the mean log probability of a row, so that ``GridSearchCV`` needs nothing else to be told.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RepeatedKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skvbem import StructureSearchCV, VBDiscreteDAG
from skvbem.datasets import load_carcinoma, load_soybean_large
from skvbem.plotting import StructureSearchDisplay

slides = load_carcinoma(as_frame=True).data
model = VBDiscreteDAG(categories=[[1, 2]] * 7, random_state=0)
splitter = RepeatedKFold(n_splits=10, n_repeats=3, random_state=0)
grid = GridSearchCV(model, {"latents": [2, 3, 4, 5, 6]}, cv=splitter).fit(slides)
print(grid.best_params_)
