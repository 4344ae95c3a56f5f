"""The one front end of every file that a user writes: guards, YAML with lines, quantities, fields, problems, schemas.

The words of a language are defined with their meaning: `topology.read.model`, `experiment_language.model`, `policy`.
"""
