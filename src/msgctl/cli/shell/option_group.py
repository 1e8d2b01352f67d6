"""Groups of options that belong together, or that several commands share."""

from dataclasses import dataclass
from typing import Any, dataclass_transform


@dataclass_transform(eq_default=False)
class OptionGroup:
    """A group of options and arguments, which a command takes as one parameter (see `msgctl.cli.shell.tree.expanded`).

    Each field of a subclass, ``Annotated[type, typer.Option(…)]``, is an option of the command. Subclasses are
    dataclasses without ``__eq__`` and ``__repr__``: with both, a class takes twice as long to define, and many of them
    would delay a short run.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        dataclass(eq=False, repr=False)(cls)

    @property
    def is_empty(self) -> bool:
        """Return whether no value was given."""
        return all(value is None or value is False for value in vars(self).values())
