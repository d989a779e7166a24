"""The page of a run: what happened, and where to look, in one HTML file."""

from rankmill.report.pages import page
from rankmill.report.run import lists_of

__all__ = ["lists_of", "page"]
