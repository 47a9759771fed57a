"""What `bayplan up` adds to the simulation: the model as placer and explainer, tables, reports."""
