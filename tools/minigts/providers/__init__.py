"""What brings a plan up: `base` is the contract, `registry` has a line for each, and each has a folder with all that is
its own: the provider, what it needs of this machine, what `doctor` says of it, its system packages. `agent` is shared.
"""

DEFAULT = "uml"
"""The provider that is used unless another is named."""
