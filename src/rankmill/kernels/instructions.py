"""The functions of `rankmill.kernels.intrinsics` as instructions of the CPU."""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from rankmill.kernels import intrinsics

BYTE_POINTER = ir.IntType(8).as_pointer()


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
def first_marked(context, word):
    def generate(context, builder, signature, arguments):
        zeros = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.lshr(zeros, ir.Constant(ir.IntType(64), 3))

    return types.int64(types.uint64), generate


@intrinsic
def prefetch(context, array, index):
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), BYTE_POINTER)
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
    intrinsics.first_marked: first_marked,
    intrinsics.prefetch: prefetch,
}
