"""Steps of pipelines and faces for other tasks, made of the estimators that fit the models."""
