"""The registry of metrics, their values, and what adds them up."""
