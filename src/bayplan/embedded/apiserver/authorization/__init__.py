"""Authorization: may this user do this to that."""
