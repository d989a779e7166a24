"""The choices in which evaluators differ, and the presets."""
