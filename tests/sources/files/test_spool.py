"""What does not fit into memory comes back from its temporary file as it was."""

from contextlib import closing

import pytest

from rankmill.io.overflow import Overflow


@pytest.mark.small
def test_buffers_come_back_while_others_are_added() -> None:
    """A stream that is read twice adds batches between reads of those before them."""
    buffers = [bytes([i]) * (1 + 997 * i) for i in range(40)]
    with closing(Overflow("a source", "what it holds")) as kept:
        places = []
        for i, one in enumerate(buffers):
            places.append(kept.add(one))
            assert kept.read(places[i // 2]).to_pybytes() == buffers[i // 2]
        assert [kept.read(place).to_pybytes() for place in places] == buffers
