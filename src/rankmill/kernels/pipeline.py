"""How numba compiles kernels and helpers: in its own steps, without those that have no effect."""

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder

# The first numba that builds LLVM's passes so.
OLDEST_NUMBA = 0, 62
# Passes for what no kernel contains: closures, comprehensions, `with`, lists of constants to
# unroll, errors with arguments, expressions of whole arrays, and what numba prints about them.
NEEDLESS = {
    *("WithLifting", "InlineClosureLikes", "MakeFunctionToJitFunction", "InlineInlinables"),
    *("RewriteDynamicRaises", "FindLiterallyCalls", "LiteralUnroll", "NopythonRewrites"),
    *("LiteralPropagationSubPipelinePass", "DumpParforDiagnostics"),
}


class KernelLibrary(JITCodeLibrary):
    """A kernel, and its wrapper, which turns Python's objects into its arguments."""

    def _optimize_functions(self, module):
        if module.name == "wrapper":  # it runs once a call, so to optimize it does not pay
            for function in module.functions:
                if not function.is_declaration:
                    function.add_function_attribute("noinline")
                    function.add_function_attribute("optnone")
        super()._optimize_functions(module)


class HelperLibrary(JITCodeLibrary):
    """A helper, which is linked into kernels: it is optimized, and has no machine code."""

    def _optimize_final_module(self):
        # This removes counts of references, which would stay in the loops of kernels.
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        """Return 0: Python cannot call it."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self):
        """What numba gives a function's constants to, which only machine code reads."""
        return self

    def set_env(self, name, environment):
        """Do nothing."""


class KernelCompiler(CompilerBase):
    """Compiles a function that Python calls."""

    library: type[JITCodeLibrary] = KernelLibrary

    def define_pipelines(self):
        """Return the passes of numba that kernels need."""
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        manager = DefaultPassBuilder.define_nopython_pipeline(state)
        manager.passes = [one for one in manager.passes if one[0].__name__ not in NEEDLESS]
        return [manager]


class HelperCompiler(KernelCompiler):
    """Compiles a function that only kernels call."""

    library = HelperLibrary
