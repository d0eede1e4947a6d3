"""What the build of rote does besides packing: the page and the stubs go into the
wheel, and the README onto the index page.

The page and the robot's shapes are built when they are not there (scripts/page_build.py). They go
into the source archive too, so that a wheel is built from it without npm. Without them the build
fails and says what to do; ROTE_WITHOUT_PAGE=1 builds without them on purpose.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


class PageHook(BuildHookInterface[Any]):
    """Puts exactly the files of the built page into what is packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the stubs, build the page where it is missing, and name the files."""
        root = Path(self.root)
        sys.path[:0] = [str(root / "scripts"), str(root / "scripts" / "generate")]
        try:
            files = _write_stubs()
            if version == "editable":  # all of them are found in the checkout
                return
            files += self._page_files()
        finally:
            del sys.path[:2]
        source = root if self.target_name == "sdist" else root / "src"
        for file in files:
            build_data["force_include"][str(file)] = file.relative_to(source).as_posix()

    def _page_files(self) -> list[Path]:
        if os.environ.get("ROTE_WITHOUT_PAGE", "") not in {"", "0"}:
            self.app.display_warning("rote is built without its page: ROTE_WITHOUT_PAGE is set.")
            return []
        import page_build  # noqa: PLC0415 - it lies in scripts/

        try:
            files: list[Path] = page_build.build_page() + page_build.build_shapes()
        except page_build.CannotBuildError as error:
            sys.exit(
                f"\nrote: the page of `rote web` cannot be built: {error}.\n"
                "      Do that and build again, or build without the page on purpose: set the\n"
                "      environment variable ROTE_WITHOUT_PAGE=1.\n"
            )
        if self.target_name == "sdist":  # so that it is known there to be up to date
            files += [page_build.STATIC / page_build.STAMP, page_build.MODEL / page_build.STAMP]
        return files


def _write_stubs() -> list[Path]:
    import sync_stub  # noqa: PLC0415 - it lies in scripts/generate
    import track_edits_stub  # noqa: PLC0415

    return [sync_stub.write(), track_edits_stub.write()]


class IndexPageHook(MetadataHookInterface):
    """Makes the README fit for a package index, where no file lies beside it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme and the addresses of the project."""
        root = Path(self.root)
        home = str(self.config.get("repository", "")).rstrip("/")
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": index_page(text, home, f"v{_version(root)}"),
        }
        metadata["urls"] = addresses(home)


def addresses(home: str) -> dict[str, str]:
    """Return the addresses that an index shows; none while the project has no home."""
    if not home:
        return {}
    return {
        "Source": home,
        "Documentation": f"{home}/blob/main/docs/index.md",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


def index_page(text: str, home: str, tag: str) -> str:
    """Return the README with addresses in place of paths. Without a home for them pictures are left
    out, and links are only their text.
    """

    def absolute(found: "re.Match[str]") -> str:
        picture, label, target = found.groups()
        if "://" in target or target.startswith("#"):
            return found[0]
        if not home:
            return "" if picture else label
        return f"{picture}[{label}]({home}/{'raw' if picture else 'blob'}/{tag}/{target})"

    shown = _LINK.sub(absolute, _COMMENT.sub("", text))
    return re.sub(r"\n{3,}", "\n\n", shown)


def _version(root: Path) -> str:
    source = (root / "src" / "rote" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', source, re.MULTILINE)
    assert found is not None
    return found[1]
