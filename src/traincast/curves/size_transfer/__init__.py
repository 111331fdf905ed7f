"""The learning curve of a model that has not run yet, from those of its siblings."""
