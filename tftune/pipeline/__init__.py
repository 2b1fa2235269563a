"""From a model, or shapes, to artifacts, within a budget of seconds."""
