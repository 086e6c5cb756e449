"""What all censored regressors have in common."""

import os

from deeptobit.estimators.formula import FormulaMixin
from deeptobit.estimators.inputs import check_kind
from deeptobit.estimators.plotting import PlotMixin
from deeptobit.estimators.prediction import PredictionKind
from deeptobit.files import Precision, save_model, write_onnx


class CensoredRegressor(PlotMixin, FormulaMixin):
    """Base of the estimators: predictions, calibrated intervals, explanations, pictures, formulas.

    A subclass sets ``lower_``, ``upper_``, ``sigma_``, ``target_names_`` and
    ``_one_dimensional`` in ``fit``, and computes latent scores. ``feature_scale_`` is set where
    the standard deviations of the features are known.
    """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to one file, which :func:`deeptobit.load` reads: arrays and JSON, no pickle.

        Parameters and everything fitted are stored. Training data are not: inference such as
        ``summary`` looks back at them and is not available after loading. A loaded model that
        had learned by ``partial_fit`` goes on as from a fitted one. An older file is replaced
        once the new one is complete.

        A function as ``step_size``, noise of your own, or another object that would have to be
        executed on loading is a ``TypeError`` that names it.

        Parameters
        ----------
        path : str or Path
        """
        save_model(self, path)

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        kind: PredictionKind | None = None,
        *,
        dtype: Precision = "float32",
    ) -> None:
        """Write ``predict`` as an ONNX file, which other systems run without Python.

        The graph has one input ``X`` of shape (batch, D) and one output, named by its kind, of
        shape (batch, T), also where Y was 1-d. Standardisation, intercepts, all layers and the
        censored mean are in it; everything is computed in double precision and rounded at the
        end. Names, bounds and noise scales are in its metadata. A missing feature gives NaN.
        The bounds are those of the targets: limits that differ from row to row are not in it.
        Needs the extra ``onnx`` and, for ``kind="mean"``, Gaussian noise.

        Parameters
        ----------
        path : str or Path
        kind : {"mean", "clip", "latent"}, optional
            As in ``predict``; ``None`` takes the constructor's ``prediction``.
        dtype : {"float32", "float64"}
            Of input and output. Single precision keeps seven digits of a feature: one that varies
            by 1 around 1,000,000 needs ``"float64"``.

        Examples
        --------
        >>> import numpy as np
        >>> from tempfile import TemporaryDirectory
        >>> from onnx.reference import ReferenceEvaluator
        >>> from deeptobit import TobitRegressor
        >>> X = np.arange(20.0, dtype=np.float32)[:, None]
        >>> y = np.clip(X[:, 0] - 5 + np.sin(X[:, 0]), 0, 10)
        >>> model = TobitRegressor(upper=10).fit(X, y)
        >>> with TemporaryDirectory() as folder:
        ...     model.to_onnx(f"{folder}/tobit.onnx")
        ...     graph = ReferenceEvaluator(f"{folder}/tobit.onnx")
        >>> graph.run(None, {"X": X[4:7]})[0].ravel().round(3), model.predict(X[4:7]).round(3)
        (array([0.008, 0.177, 0.882], dtype=float32), array([0.008, 0.177, 0.882], dtype=float32))
        """
        kind = self.prediction if kind is None else kind
        check_kind(kind)
        write_onnx(self, path, kind, dtype)
