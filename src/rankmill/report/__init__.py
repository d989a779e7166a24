"""The page of a run: what happened, and where to look, in one HTML file."""

from rankmill.report.pages import page
from rankmill.report.run import compare_in_detail, lists_of

__all__ = ["compare_in_detail", "lists_of", "page"]
