"""The one front end of every file that a user writes: guards, YAML with lines, quantities, fields, problems, schemas.

What the words of a language are stands with what they mean: `topology.model`, `experiments.model`, `policy`.
"""
