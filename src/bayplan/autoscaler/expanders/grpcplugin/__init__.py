"""The `grpc` expander: a program in another process chooses among the options.

A decision is pure, so it cannot call. It raises `AnswerNeededError` with its request when an answer
is missing; the loop awaits the answer outside of any fork, and makes the decision again.
"""
