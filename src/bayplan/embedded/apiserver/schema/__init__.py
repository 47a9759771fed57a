"""The types of built-in kinds: one table, from which all schema information is derived.

Validation, protobuf decoding, OpenAPI documents, merge keys and list types use the same table.
"""
