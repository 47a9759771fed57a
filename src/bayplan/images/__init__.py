"""Images per runtime class: platforms, registry puller, store, CRI service, manager, collection."""
