"""The command line. `app` starts and ends it; `labs`, `hosts`, `policy`, `experiments`, `bundles` and `project` hold a
short function for each verb, `libvirt` those that only virtual machines need; `screen` is how it looks. Nothing else
prints; what a verb does is done elsewhere.
"""

# In this order the verbs are listed.
from minigts.cli import labs  # isort: skip
from minigts.cli import hosts  # isort: skip
from minigts.cli import policy  # isort: skip
from minigts.cli import experiments  # isort: skip
from minigts.cli import bundles  # isort: skip
from minigts.cli import project  # isort: skip
from minigts.cli import libvirt  # isort: skip
from minigts.cli.app import main

__all__ = ["bundles", "experiments", "hosts", "labs", "libvirt", "main", "policy", "project"]
