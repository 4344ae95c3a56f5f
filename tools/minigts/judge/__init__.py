"""The judgement of figures: statistics, tolerances, and one function for each word of `expect:` and `claims:`.

It is pure: it measures nothing, reads no file, and knows a lab by its plan alone. The certificate, `minigts check`,
experiments, the report and the tests all use it; docs/decisions/judge.md says what each word means, and why.
"""
