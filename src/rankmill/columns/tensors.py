"""Tensors of PyTorch as NumPy arrays; PyTorch is not imported, as only those who have it do."""

from typing import Any

from rankmill.errors import InputError


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch, or of a class that is made of it."""
    return any((one.__module__, one.__name__) == ("torch", "Tensor") for one in type(value).__mro__)


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse tensor of PyTorch, of any layout."""
    return is_tensor(value) and str(value.layout) != "torch.strided"


def numpy_of(value: Any) -> Any:
    """A dense tensor as an array; anything else as it is.

    The array is a view if the tensor is in the memory of the CPU; from another device it is copied.
    NumPy has no bfloat16: float32 has all its values.
    """
    if not is_tensor(value):
        return value
    check_dense(value)
    try:
        held = value.detach().cpu()
        return (held.float() if str(held.dtype) == "torch.bfloat16" else held).numpy()
    except (TypeError, NotImplementedError) as error:  # of a meta tensor, or of 8 bits
        raise InputError(
            f"a tensor of {value.dtype} on {value.device} is not a NumPy array: {error}"
        ) from None


def check_dense(tensor: Any) -> None:
    """Raise InputError if a tensor is sparse."""
    if is_sparse(tensor):
        raise InputError(
            f"a tensor of layout {tensor.layout} is not read: give its to_dense(), or a sparse "
            "array of SciPy"
        )
