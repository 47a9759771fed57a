"""Images per runtime class: platforms, registries, store, CRI service, image manager, image GC."""
