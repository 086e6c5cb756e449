from tests.app.report.conftest import browser

__all__ = ["browser"]
