"""Problems that were answered wrongly once, as ``python -m tests.properties.many`` prints them.

What they were: features, targets, bounds, weights or a given σ of a size at which squares overflow
or vanish; no feature that varies; a penalty of 0 beside ``feature_sparsity``; intervals whose ends
round to one number far out; curvature that vanishes or is negative; folds of intervals alone;
components sown too large for features that are not standardised; constant columns, sparse or
all there are; rows that two models both find impossible; wild features of rows of weight 0.
"""

from tests.properties.problems import Recipe

FOUND = (
    Recipe(seed=183, n_rows=29, weights="huge", feature_size=1e160, model="subspace"),
    Recipe(seed=219, n_rows=2, feature_size=1e300, container="sparse", settings={"alpha": 1.0}),
    Recipe(
        *(370, 5, ("zero",), ("open",)),
        intervals=True,
        model="subspace",
        settings={"rank": 2, "alpha": 0.001},
    ),
    Recipe(
        *(9712, 12, ("normal",) * 6, ("bounded", "open", "bounded", "bounded")),
        by_entry=True,
        model="network",
        settings={"alpha": 0.0, "rank": 7, "feature_sparsity": 0.3, "n_layers": 2},
    ),
    Recipe(452, 8, target_size=1e100, settings={"alpha": 0.001, "sigma": 1.0, "noise": "logistic"}),
    Recipe(4334, 30, weights="huge", by_entry=True, settings={"alpha": 1.0}),
    Recipe(773, 4, target_size=1e-160, model="subspace", settings={"sigma": 1.0}),
    Recipe(7477, 8, tasks=("wild", "open"), intervals=True, single=True, model="network"),
    Recipe(0, target_size=1e-300, model="network", settings={"early_stopping": True}),
    Recipe(0, target_size=1e160, intervals=True, model="subspace"),
    Recipe(
        *(63999846, 10, ("constant", "binary", "zero", "binary", "normal", "far")),
        feature_size=1e12,
        intervals=True,
    ),
    Recipe(
        *(48849, 4, ("binary", "wild", "wild", "binary"), ("at bounds", "rounded", "wild")),
        model="subspace",
        settings={"standardize": False},
    ),
    Recipe(
        *(5310, 6, ("normal", "normal"), ("open",)),
        feature_size=1e-160,
        model="subspace",
        settings={"standardize": False, "sigma": 1000.0, "solver": "online"},
    ),
    Recipe(
        *(520029996, 7, ("normal",) * 3, ("bounded",)),
        target_size=1e-300,
        n_pieces=1,
        model="subspace",
        settings={"fit_intercept": False, "noise": "logistic", "sigma": 1000.0, "rank": 1},
    ),
    Recipe(
        *(160, 12, ("normal", "binary"), ("open",) * 3),
        feature_size=1e-300,
        model="network",
        settings={"joint_tuning": False, "fit_intercept": False},
    ),
    Recipe(
        *(232, 6, ("normal", "normal", "binary", "copy"), ("bounded", "open", "bounded")),
        weights="tiny",
        model="network",
        settings={"sigma": 0.001, "standardize": False, "noise": "logistic"},
    ),
    Recipe(
        *(16920, 3, ("binary",), ("bounded",)),
        weights="tiny",
        intervals=True,
        model="search",
        settings={"random_state": 0, "cv": 2},
    ),
    Recipe(
        *(853618, 4, ("normal",), ("scores", "open")),
        intervals=True,
        single=True,
        settings={"noise": "logistic", "sigma": 0.001, "alpha": 1.0},
    ),
    Recipe(
        *(15432874, 6, ("normal", "wild"), ("bounded", "constant")),
        single=True,
        container="sparse",
    ),
    Recipe(
        *(519, 15, ("normal", "binary"), ("bounded",)),
        target_size=1e145,
        n_pieces=1,
        model="subspace",
        settings={"rank": 1, "sigma": 1000.0},
    ),
    Recipe(
        *(1401, 8, ("normal", "binary"), ("wild",)),
        n_pieces=1,
        model="subspace",
        settings={"sigma": 1000.0, "standardize": False},
    ),
    Recipe(
        *(111, 6, ("normal", "normal"), ("scores", "bounded", "bounded", "bounded")),
        target_size=1000.0,
        by_entry=True,
        n_pieces=1,
        model="subspace",
        settings={"alpha": 1.0, "standardize": False, "sigma": 1.0, "noise": "student_t"},
    ),
    Recipe(
        *(267795, 12, ("wild", "copy", "binary", "wild"), ("bounded", "bounded", "scores")),
        target_size=1e-300,
        intervals=True,
        n_pieces=3,
        model="subspace",
    ),
    Recipe(
        *(0, 10, ("binary", "normal", "normal", "normal"), ("bounded",)),
        target_size=1000.0,
        weights="uneven",
        intervals=True,
        model="network",
        settings={"rank": 6, "joint_tuning": True, "n_passes": 2, "solver": "online"},
    ),
    Recipe(
        *(3685692, 10, ("normal",), ("open", "open", "open")),
        target_size=1e-300,
        intervals=True,
        n_pieces=2,
        model="network",
        settings={"solver": "online"},
    ),
    Recipe(
        *(3793677, 20, ("constant", "normal", "normal", "normal")),
        *(("bounded", "wild", "vast", "wild"),),
        weights="uneven",
        model="subspace",
        settings={"rank": 7, "feature_sparsity": 0.3, "alpha": 0.1},
    ),
    Recipe(
        *(38439, 6, ("wild", "normal"), ("scores", "bounded", "bounded", "bounded")),
        target_size=1e145,
        intervals=True,
        container="fortran",
        model="search",
        settings={"cv": 4},
    ),
    Recipe(
        *(4294967295, 3, ("normal", "normal", "normal", "binary"), ("bounded", "bounded")),
        feature_size=1e12,
        flat=True,
        model="subspace",
        settings={"rank": 6, "standardize": False},
    ),
    Recipe(
        *(70956357, 12, ("normal", "normal", "copy"), ("wild", "at upper", "scores", "open")),
        intervals=True,
        single=True,
        model="subspace",
        settings={"rank": 4, "fit_intercept": False, "standardize": False, "solver": "online"},
    ),
    Recipe(
        *(4294967294, 20, ("zero", "lone", "normal"), ("open", "one known", "scores")),
        feature_size=1e12,
        model="network",
        settings={"n_layers": 1, "rank": 5, "standardize": False, "feature_sparsity": 0.3},
    ),
    Recipe(
        *(1495, 30, ("normal", "constant", "normal", "normal")),
        ("at upper", "ceiling", "at upper", "at upper"),
        feature_size=1e100,
        target_size=1e100,
        flat=True,
        container="sparse",
        model="search",
    ),
    Recipe(
        *(380787, 10, ("constant", "normal", "normal"), ("wild", "wild")),
        feature_size=1e12,
        model="subspace",
        settings={"standardize": False, "solver": "online"},
    ),
    Recipe(
        *(3, 20, ("normal",), ("bounded",)),
        container="fortran",
        model="network",
        settings={
            **{"n_layers": 3, "rank": 3, "noise": "student_t"},
            **{"standardize": False, "skip_connection": False, "random_state": 0},
        },
    ),
    Recipe(
        *(198, 12, ("zero", "zero"), ("bounded", "bounded", "scores", "bounded")),
        flat=True,
        model="search",
        settings={"noise": "auto"},
    ),
    Recipe(
        *(37092, 25, ("zero", "binary"), ("open", "open", "scores")),
        intervals=True,
        single=True,
        model="network",
        settings={"alpha": 0.1, "n_layers": 3, "solver": "online", "random_state": 1},
    ),
    Recipe(
        *(1425, 2, ("normal", "normal", "lone", "normal", "normal", "normal")),
        ("bounded", "bounded", "one known", "bounded"),
        model="subspace",
        settings={"solver": "online", "random_state": 0},
    ),
    Recipe(
        *(16762, 10, ("normal", "zero", "wild", "binary", "binary", "normal")),
        tasks=("constant", "open", "at lower", "bounded"),
        weights="some zero",
        model="subspace",
        settings={"sigma": 0.001},
    ),
    Recipe(
        *(14242420, 6, ("normal",) * 4, ("open", "bounded", "ceiling", "scores")),
        target_size=1e145,
        model="subspace",
        settings={"standardize": False, "solver": "online"},
    ),
    Recipe(
        *(62705, 15, ("normal", "binary", "normal", "normal")),
        tasks=("bounded", "open", "bounded", "bounded"),
        target_size=1e145,
        intervals=True,
        model="subspace",
        settings={"rank": 1, "n_passes": 2, "standardize": False, "solver": "online"},
    ),
    Recipe(
        *(1837, 6, ("copy", "normal", "zero", "normal", "normal", "wild")),
        tasks=("infinite", "scores", "open", "bounded"),
        model="search",
    ),
)
