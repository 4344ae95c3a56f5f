"""For those who test labs by pytest: `plugin` is what pytest loads, `chosen` decides which lab is tested and on what.
Nothing here measures or judges; that is asked of `minigts.api`."""
