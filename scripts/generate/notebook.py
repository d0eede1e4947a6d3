"""Run a notebook's cells as a kernel would, and write what they print and return into the file."""

import ast
import asyncio
import inspect
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


class Kernel:
    """Runs cells in one scope and on one event loop, which runs while a cell does."""

    def __init__(self) -> None:
        self._scope: dict[str, Any] = {"__name__": "__main__"}
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)

    def run(self, code: str, name: str = "cell") -> tuple[str, str | None]:
        """Run a cell; return what it printed, and its last expression's value as text."""
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()

        async def cell() -> Any:
            await self._evaluate(compile(tree, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
            if last is None:
                return None
            assert isinstance(last, ast.Expr)
            shown = ast.Expression(last.value)
            return await self._evaluate(
                compile(shown, name, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            )

        with redirect_stdout(printed):
            value = self._loop.run_until_complete(cell())
        return printed.getvalue(), None if value is None else repr(value)

    async def _evaluate(self, program: Any) -> Any:
        result = eval(program, self._scope)  # noqa: S307 - a cell of our own notebook
        return await result if inspect.iscoroutine(result) else result

    def close(self) -> None:
        """End the loop."""
        self._loop.close()
        asyncio.set_event_loop(None)


def outputs(printed: str, value: str | None, count: int) -> list[dict[str, Any]]:
    """Return the outputs of a cell as a notebook has them."""
    found: list[dict[str, Any]] = []
    if printed:
        found.append(
            {"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}
        )
    if value is not None:
        data = {"text/plain": value.splitlines(keepends=True)}
        found.append(
            {
                "data": data,
                "execution_count": count,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return found


def main() -> None:
    """Run the notebook and renew its outputs."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else NOTEBOOK
    notebook = json.loads(path.read_text(encoding="utf-8"))
    kernel, count = Kernel(), 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            printed, value = kernel.run("".join(cell["source"]))
            cell["execution_count"] = count
            cell["outputs"] = outputs(printed, value, count)
    kernel.close()
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
