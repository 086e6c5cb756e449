"""The doctor: what can be wrong with a study and its table, and how to fix it."""

# Its rules, and those of ``values``, are listed when it is imported.
from deeptobit.app.study.doctor import features as features
