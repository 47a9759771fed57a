"""How clients are spoken with: paths, queries, bodies and formats in; responses and streams out."""
