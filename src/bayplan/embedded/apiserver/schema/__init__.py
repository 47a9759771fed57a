"""The shapes of built-in kinds: one table of types, from which everything about shapes is made.

Field checks, protobuf decoding, OpenAPI documents, merge keys and list types all read the same
table.
"""
