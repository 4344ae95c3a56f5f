"""How far a lab can be trusted: `certificate` judges what was measured against what was declared; `measure` measures
every lab; `expectations` measures what its topology file expects beyond that."""
