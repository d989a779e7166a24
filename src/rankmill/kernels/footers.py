"""Reading the footer of a Parquet file: Thrift's compact protocol, whatever its bytes are."""

import numpy as np

from rankmill.kernels.jit import helper, kernel

# What is kept of a column chunk; what its footer lacks is -1.
VALUES, COMPRESSED, UNCOMPRESSED, PHYSICAL, LOW, LOW_SIZE, HIGH, HIGH_SIZE, ENCRYPTED = range(9)
CHUNK_FIELDS = 9
# Footers are some ten structures and lists deep.
DEEPEST = 64


@helper
def unsigned_at(data, at):
    """The number of variable length at a place, and the place behind it: -1 if it does not end."""
    number = np.int64(0)
    for shift in range(0, 64, 7):
        if at >= len(data):
            return number, -1
        byte = np.int64(data[at])
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    return number, -1


@helper
def signed(number):
    """The signed number that an unsigned one stands for: 0, -1, 1, -2 and so on."""
    return ((number >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1)


@kernel
def parse_footer(data, out_rows, out_groups, out_chunks):
    """Write what a footer tells; return whether it is whole.

    No byte is looked at before its place was checked, and no count is believed that the bytes left
    cannot hold. Fields are known by their numbers in parquet.thrift, from the file down: its row
    groups are field 4, the chunks of a row group field 1, and so on.

    Parameters
    ----------
    data : uint8[n]
        The footer, without its length and the magic bytes.
    out_rows : int64[1]
        The rows of the file.
    out_groups : int64[row groups, 2]
        The rows of each row group, and its bytes, uncompressed.
    out_chunks : int64[row groups, columns, CHUNK_FIELDS]
        Of each column chunk: its values, its sizes, its physical type, where in `data` its lowest
        and its highest value stand and their sizes, and 1 if it is encrypted.
    """
    size = len(data)
    # A level is a structure (kind -1), or a list or map, of so many elements that are left; a
    # list's kind is that of its elements, twice; a map's, those of its keys and of its values.
    kinds = np.empty(DEEPEST, np.int64)
    left = np.empty(DEEPEST, np.int64)
    field = np.empty(DEEPEST, np.int64)  # the number of the field, or of the element from 0
    depth = at = 0
    kinds[0] = -1
    field[0] = 0
    while depth >= 0:
        in_list = kinds[depth] >= 0
        if in_list:
            if left[depth] == 0:
                depth -= 1
                continue
            left[depth] -= 1
            field[depth] += 1
            kind = kinds[depth] >> 4 if left[depth] & 1 else kinds[depth] & 15
        else:
            if at >= size:
                return False
            header = np.int64(data[at])
            at += 1
            kind = header & 15
            if kind == 0:
                depth -= 1
                continue
            field[depth] += header >> 4
            if header < 16:
                number, at = unsigned_at(data, at)
                if at < 0:
                    return False
                field[depth] = signed(number)

        in_group = depth >= 2 and field[0] == 4
        in_chunk = depth >= 4 and in_group and field[2] == 1
        in_column = depth >= 5 and in_chunk and field[4] == 3
        group = field[1] if in_group else 0
        chunk = field[3] if in_chunk else 0
        if group < 0 or chunk < 0 or kind == 0:
            return False
        if (in_group and group >= len(out_groups)) or (in_chunk and chunk >= out_chunks.shape[1]):
            return False

        if kind <= 2:  # true and false, which take no byte in a structure
            at += in_list
        elif kind == 3:
            at += 1
        elif kind <= 6:
            number, at = unsigned_at(data, at)
            if at < 0:
                return False
            number = signed(number)
            if depth == 0 and field[0] == 3:
                out_rows[0] = number
            elif in_group and depth == 2 and field[2] == 3:
                out_groups[group, 0] = number
            elif in_group and depth == 2 and field[2] == 2:
                out_groups[group, 1] = number
            elif in_column and depth == 5 and field[5] == 1:
                out_chunks[group, chunk, PHYSICAL] = number
            elif in_column and depth == 5 and field[5] == 5:
                out_chunks[group, chunk, VALUES] = number
            elif in_column and depth == 5 and field[5] == 6:
                out_chunks[group, chunk, UNCOMPRESSED] = number
            elif in_column and depth == 5 and field[5] == 7:
                out_chunks[group, chunk, COMPRESSED] = number
        elif kind == 7:  # a double
            at += 8
        elif kind == 8:  # bytes
            number, at = unsigned_at(data, at)
            if at < 0 or number < 0 or number > size - at:
                return False
            if in_column and depth == 6 and field[5] == 12 and field[6] == 5:
                out_chunks[group, chunk, HIGH] = at
                out_chunks[group, chunk, HIGH_SIZE] = number
            elif in_column and depth == 6 and field[5] == 12 and field[6] == 6:
                out_chunks[group, chunk, LOW] = at
                out_chunks[group, chunk, LOW_SIZE] = number
            at += number
        elif kind == 13:  # a UUID
            at += 16
        elif kind <= 12:
            if in_chunk and depth == 4 and field[4] == 8:
                out_chunks[group, chunk, ENCRYPTED] = 1
            number = np.int64(0)
            elements = np.int64(-1)
            if kind <= 10:  # a list or a set
                if at >= size:
                    return False
                header = np.int64(data[at])
                at += 1
                number = header >> 4
                elements = (header & 15) * 17
                if number == 15:
                    number, at = unsigned_at(data, at)
            elif kind == 11:  # a map
                number, at = unsigned_at(data, at)
                elements = np.int64(0)
                if 0 <= at < size and number:
                    elements = np.int64(data[at])
                    at += 1
            depth += 1
            if at < 0 or depth == DEEPEST or number < 0 or number > size - at:
                return False
            kinds[depth] = elements
            left[depth] = 2 * number if kind == 11 else number
            field[depth] = 0 if kind == 12 else -1
        else:
            return False
        if at > size:
            return False
    return True
