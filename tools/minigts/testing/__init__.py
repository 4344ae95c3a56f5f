"""Testing labs with pytest: `plugin` is the pytest plugin, `chosen` decides which lab is tested and on which provider.
`minigts.api` measures and judges."""
