"""The page of a run: what happened, and where to look, in one HTML file."""

from rankmill.analysis.compare.compare import compare_in_detail
from rankmill.nightly.report.pages import lists_of, page

__all__ = ["compare_in_detail", "lists_of", "page"]
