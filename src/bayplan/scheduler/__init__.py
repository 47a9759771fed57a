"""The scheduler: pods in order, decided by the model, bound through the API."""
