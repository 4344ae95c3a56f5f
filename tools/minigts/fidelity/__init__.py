"""How far a lab can be trusted: `certificate` judges what was measured against what was declared; `measure` measures
every lab, by `round_trips`, `losses` and `rates`; `kept_certificate` is what was measured last; `expectations` measures
what its topology file expects beyond that."""
