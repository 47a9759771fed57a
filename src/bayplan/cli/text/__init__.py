"""What commands print for people: tables, colours, progress."""
