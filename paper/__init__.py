"""The paper, computed again: baselines, tables, figures and claims."""
