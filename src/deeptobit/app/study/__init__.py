"""Studies: a table and a TOML file that says what to predict from what; fit, predict, compare."""

from deeptobit.app.study.chunks import Passes
from deeptobit.app.study.columns import FEWEST, reveals_small_count
from deeptobit.app.study.comparison import (
    TextTable,
    notes,
    summarise,
    table_by_share,
    table_of_measures,
    table_of_targets,
    verdict,
    write_summary,
)
from deeptobit.app.study.config import Study, read_study
from deeptobit.app.study.data import StudyData, build_data, read_data, read_ids
from deeptobit.app.study.doctor import Finding, diagnose, find_codes
from deeptobit.app.study.encoding import EncodedColumn, Encoder
from deeptobit.app.study.errors import StudyError
from deeptobit.app.study.evaluate import (
    Evaluation,
    Job,
    ResultStore,
    evaluate,
    open_results,
    open_store,
    run_jobs,
)
from deeptobit.app.study.fitted import (
    FittedStudy,
    HeldOut,
    load_fitted,
    predict_table,
    save_fitted,
    versions,
)
from deeptobit.app.study.fitting import Progress, fit_study, make_model, make_network
from deeptobit.app.study.measures import MEASURES, Measure, Predicted, measure
from deeptobit.app.study.memory import MemoryCheck, available_memory, check_memory, read_bytes
from deeptobit.app.study.methods import (
    METHODS,
    Baseline,
    InterceptOnly,
    Regression,
    Taskwise,
    make_methods,
)
from deeptobit.app.study.output import check_writable, convert_table, write_table, write_whole
from deeptobit.app.study.propose import Proposal, ProposedTarget, propose_study
from deeptobit.app.study.splits import (
    EvaluationData,
    Folds,
    Protocol,
    Skipped,
    Split,
    data_of_cohort,
    data_of_study,
    draw_splits,
    find_usable,
    inner_folds,
)
from deeptobit.app.study.stream import stream_study
from deeptobit.app.study.tables import Table, read_table

__all__ = [
    "FEWEST",
    "MEASURES",
    "METHODS",
    "Baseline",
    "EncodedColumn",
    "Encoder",
    "Evaluation",
    "EvaluationData",
    "Finding",
    "FittedStudy",
    "Folds",
    "HeldOut",
    "InterceptOnly",
    "Job",
    "Measure",
    "MemoryCheck",
    "Passes",
    "Predicted",
    "Progress",
    "Proposal",
    "ProposedTarget",
    "Protocol",
    "Regression",
    "ResultStore",
    "Skipped",
    "Split",
    "Study",
    "StudyData",
    "StudyError",
    "Table",
    "Taskwise",
    "TextTable",
    "available_memory",
    "build_data",
    "check_memory",
    "check_writable",
    "convert_table",
    "data_of_cohort",
    "data_of_study",
    "diagnose",
    "draw_splits",
    "evaluate",
    "find_codes",
    "find_usable",
    "fit_study",
    "inner_folds",
    "load_fitted",
    "make_methods",
    "make_model",
    "make_network",
    "measure",
    "notes",
    "open_results",
    "open_store",
    "predict_table",
    "propose_study",
    "read_bytes",
    "read_data",
    "read_ids",
    "read_study",
    "read_table",
    "reveals_small_count",
    "run_jobs",
    "save_fitted",
    "stream_study",
    "summarise",
    "table_by_share",
    "table_of_measures",
    "table_of_targets",
    "verdict",
    "versions",
    "write_summary",
    "write_table",
    "write_whole",
]
