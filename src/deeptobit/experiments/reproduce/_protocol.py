"""The protocol of comparisons, as they need it and in sentences."""

from deeptobit.experiments._splits import Protocol
from deeptobit.experiments.reproduce._choosing import Choice
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._scales import Scale


def protocol_of(scale: Scale, context: Context) -> Protocol:
    """The paper's random splits."""
    return Protocol(train_shares=scale.train_shares, repeats=scale.repeats, seed=context.seed)


def how_split(protocol: Protocol) -> str:
    """How rows were split.

    Examples
    --------
    >>> print(how_split(Protocol(train_shares=(0.4, 0.8), repeats=5)))
    All methods see the same 5 random splits at each of 40%, 80% to train on.
    """
    shares = ", ".join(f"{share:.0%}" for share in protocol.train_shares)
    return (
        f"All methods see the same {protocol.repeats} random splits at each of {shares} to train "
        "on."
    )


def how_chosen(choice: Choice) -> str:
    """How settings were chosen."""
    if choice == "paper":
        return (
            "Settings are those with the best value on the test rows, as in the paper, and a DNN "
            "stops early by them: errors of all methods with a grid are too low. Least squares and "
            "Tobit have nothing to choose; SN with our defaults chooses on training rows all the "
            "same."
        )
    return (
        "Settings are chosen on training rows alone: a fifth of them, the same for every method, "
        "decides, and the chosen method is fitted to all of them (a DNN stops early by that fifth)."
    )
