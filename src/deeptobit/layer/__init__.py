"""One low-rank Tobit layer to the optimum: problem, null model, start, Newton–CG, certificate."""

from deeptobit.layer.alpha import choose_alpha as choose_alpha
from deeptobit.layer.features import BasisFeatures as BasisFeatures
from deeptobit.layer.features import Design as Design
from deeptobit.layer.features import Layer as Layer
from deeptobit.layer.features import TargetScaling as TargetScaling
from deeptobit.layer.features import column_moments as column_moments
from deeptobit.layer.features import features_for as features_for
from deeptobit.layer.features import to_standard as to_standard
from deeptobit.layer.features import to_user as to_user
from deeptobit.layer.newton import Objective as Objective
from deeptobit.layer.newton import minimize_each as minimize_each
from deeptobit.layer.newton import positive_inverse as positive_inverse
from deeptobit.layer.problem import LayerEvaluation as LayerEvaluation
from deeptobit.layer.problem import LayerProblem as LayerProblem
from deeptobit.layer.problem import SubspaceEvaluation as SubspaceEvaluation
from deeptobit.layer.problem import SubspaceProblem as SubspaceProblem
from deeptobit.layer.solve import NullLayer as NullLayer
from deeptobit.layer.solve import Step as Step
from deeptobit.layer.solve import null_layer as null_layer
from deeptobit.layer.solve import solve_path as solve_path
from deeptobit.layer.solve import solve_subspace as solve_subspace
from deeptobit.layer.solve import spectral_start as spectral_start
from deeptobit.layer.tobit import SIGMA_FLOOR as SIGMA_FLOOR
from deeptobit.layer.tobit import CensoringKinds as CensoringKinds
from deeptobit.layer.tobit import OlsenProblem as OlsenProblem
from deeptobit.layer.tobit import fit_tobit as fit_tobit
