"""How far a lab can be trusted: `certificate` says what was declared and what was measured, and judges it; `measure`
measures every lab; `expectations` what its topology file expects beyond that."""
