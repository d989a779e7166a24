"""How numba compiles kernels and helpers: in its own steps, without those that have no effect."""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder

# Passes for what no kernel contains: closures, comprehensions, `with`, lists of constants to unroll,
# errors with arguments, expressions of whole arrays, and what numba prints about its own work.
NEEDLESS = {
    *("WithLifting", "InlineClosureLikes", "MakeFunctionToJitFunction", "InlineInlinables"),
    *("RewriteDynamicRaises", "FindLiterallyCalls", "LiteralUnroll", "NopythonRewrites"),
    *("LiteralPropagationSubPipelinePass", "DumpParforDiagnostics"),
}


class KernelCompiler(CompilerBase):
    """Compiles a function that Python calls."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.library = self._library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        manager = DefaultPassBuilder.define_nopython_pipeline(state)
        manager.passes = [one for one in manager.passes if one[0].__name__ not in NEEDLESS]
        return [manager]

    def _library(self, codegen: Any, name: str) -> JITCodeLibrary:
        return KernelLibrary(codegen, name)


class HelperCompiler(KernelCompiler):
    """Compiles a function that only kernels call."""

    def _library(self, codegen: Any, name: str) -> JITCodeLibrary:
        return HelperLibrary(codegen, name)


class KernelLibrary(JITCodeLibrary):
    """A kernel, and its wrapper, which turns Python's objects into its arguments."""

    def _optimize_functions(self, module: Any) -> None:
        if module.name == "wrapper":
            for function in module.functions:
                if not function.is_declaration:  # it runs once a call: to optimize it does not pay
                    function.add_function_attribute("noinline")
                    function.add_function_attribute("optnone")
        super()._optimize_functions(module)


class HelperLibrary(JITCodeLibrary):
    """A helper, to be linked into kernels: it is optimized, and no machine code is made of it."""

    def _optimize_final_module(self) -> None:
        # Reference counts must go here. In a kernel, these arrays belong to many helpers.
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> "HelperLibrary":
        """What numba gives the constants of a function to: there is no code that reads them."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing."""
