"""Generated text: a whole file, or the part of a page between two marks."""

from pathlib import Path


def write_changed(file: Path, text: str) -> Path:
    """Write a file if it is missing or has another text, and return its path."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")
    return file


def renew(page: Path, begin: str, end: str, content: str) -> None:
    """Replace what stands between `begin` and `end` in a page by `content`."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    marks = (part if part.endswith("\n") else f"{part}\n" for part in (begin, content))
    page.write_text(f"{before}{chr(10).join(marks)}\n{end}{after}", encoding="utf-8")
