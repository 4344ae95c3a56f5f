"""Programs that are in no package, kept in the cache by their content: `built` here, or `supplied` by the user."""
