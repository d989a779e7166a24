"""The functions of `rankmill.kernels.intrinsics` as instructions of the CPU."""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from rankmill.kernels import intrinsics

BYTE_POINTER = ir.IntType(8).as_pointer()
PLACE = ir.IntType(32)


def _in_all(builder, value, count):
    """Return a vector that holds a number at each of its places."""
    nothing = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    first = builder.insert_element(nothing, value, PLACE(0))
    places = ir.Constant(ir.VectorType(PLACE, count), [0] * count)
    return builder.shuffle_vector(first, nothing, places)


def _address(context, builder, signature, arguments, kind):
    """Return the address of the place in an array that the first two arguments tell."""
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), kind.as_pointer())


@intrinsic
def fold(context, a, b):
    def generate(context, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(one, wide) for one in arguments))
        upper = builder.lshr(product, ir.Constant(wide, 64))
        return builder.trunc(builder.xor(product, upper), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def count_ones(context, word):
    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def first_bit(context, word):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def bits_within(context, data, position, low, high):
    def generate(context, builder, signature, arguments):
        byte, count = ir.IntType(8), 64
        address = _address(context, builder, signature, arguments, ir.VectorType(byte, count))
        least, most = (builder.trunc(one, byte) for one in arguments[2:])
        above = builder.sub(builder.load(address, align=1), _in_all(builder, least, count))
        reach = _in_all(builder, builder.sub(most, least), count)
        return builder.bitcast(builder.icmp_unsigned("<=", above, reach), ir.IntType(64))

    return types.uint64(data, types.intp, types.intp, types.intp), generate


@intrinsic
def equal_among(context, keys, start, key):
    def generate(context, builder, signature, arguments):
        lanes = ir.VectorType(ir.IntType(64), intrinsics.LANES)
        address = _address(context, builder, signature, arguments, lanes)
        keys_there = builder.load(address, align=8)
        wanted = _in_all(builder, arguments[2], intrinsics.LANES)
        equal = builder.icmp_unsigned("==", keys_there, wanted)
        return builder.zext(builder.bitcast(equal, ir.IntType(intrinsics.LANES)), ir.IntType(64))

    return types.uint64(keys, types.intp, types.uint64), generate


@intrinsic
def prefetch(context, array, index):
    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature, arguments, ir.IntType(8))
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [BYTE_POINTER, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [BYTE_POINTER], kind)
        # The arguments of llvm.prefetch: 0 for a read, 3 for all levels of cache, 1 for data.
        builder.call(instruction, [address, *(ir.Constant(number, one) for one in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


COMPILED: dict[Any, Any] = {
    intrinsics.fold: fold,
    intrinsics.count_ones: count_ones,
    intrinsics.first_bit: first_bit,
    intrinsics.bits_within: bits_within,
    intrinsics.equal_among: equal_among,
    intrinsics.prefetch: prefetch,
}
