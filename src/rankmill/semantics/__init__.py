"""The choices on which evaluators differ, and the presets."""
