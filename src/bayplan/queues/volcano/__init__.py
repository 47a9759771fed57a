"""The different decisions of Volcano 1.15, including its defects, for comparisons.

The engine is ours: each class here is one of its classes with the methods replaced that Volcano has
otherwise, named after the habit in `docs/queues.md`. Only `bayplan queues --next --rules volcano`
and the comparison with recorded sessions use it.
"""
