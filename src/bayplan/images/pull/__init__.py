"""Pulling: from a name and a runtime handler to an image that is here whole."""
