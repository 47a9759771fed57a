"""The model of what fits: snapshot, forks, predicates, scores, explanations, volume limits."""
