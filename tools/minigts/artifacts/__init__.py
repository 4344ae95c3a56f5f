"""Programs that no package holds, in the cache by their content: `built` on this machine, or `supplied` by the user."""
