"""What `rote capture` prints for people: the report, and the comparison of two readings."""

import csv
import io
import os
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rote.capture.read.packets import harmless
from rote.platform.console_text import rich_console

if TYPE_CHECKING:
    from rote.capture.decode.teaching_dialogue import TeachingDialogue
    from rote.capture.judge.conversations import Conversation
    from rote.capture.model import TimelineEntry
    from rote.capture.report.explain import Explanation
    from rote.capture.report.report import FieldTest, Report

_MAX_FLOWS, _MAX_LINES, _MAX_SIZES = 20, 40, 6


def console() -> Console:
    """Return a console on standard output; a pipe is 200 columns wide unless COLUMNS is set."""
    wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return rich_console(highlight=False, emoji=False, width=200 if wide else None)


def _make_table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        justify = "right" if column in right else "left"
        table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return table


def show(out: Console, report: "Report") -> None:
    """Print a report."""
    document = report.document()
    out.print(f"[bold]{escape(report.name)}[/]  {report.format}")
    seconds = document["seconds"]
    span = "" if seconds is None else f", {seconds:,.1f} s from {document['start']}"
    out.print(f"{document['packets']:,} packets, {document['udp_packets']:,} of UDP{span}")
    counts = ", ".join(f"{count:,} {label}" for label, count in report.accounted.items())
    out.print(escape(counts) or "no packets")
    for label, count in document["tunnels"].items():
        out.print(f"{count:,} packets were read inside {label}")
    for one in document["icmp"][:_MAX_SIZES]:
        quotes = "".join(f"; {count:,} quote {quoted}" for quoted, count in one["quotes"].items())
        out.print(f"{one['packets']:,} {one['message']}{escape(quotes)}")
    records, frames = document["dtls_records"], document["teaching_frames"]
    out.print(f"{records:,} DTLS records; {frames or 'no'} documented teaching frames", end="\n\n")
    for warning in report.warnings:
        out.print(f"[yellow]warning[/] {escape(warning)}")
    _print_flows(out, report)
    for one in report.conversations[:_MAX_FLOWS]:
        _print_encrypted(out, one)
    _print_teaching(out, report.teaching)
    _print_limits(out, report.limits)
    _print_timeline(out, report.timeline)
    _print_tests(out, report.tests)
    _print_decrypted(out, report)


def _print_flows(out: Console, report: "Report") -> None:
    table = _make_table("from", "to", "what", "packets", "bytes", "why", right=("packets", "bytes"))
    for one in sorted(report.conversations, key=lambda one: -one.packets)[:_MAX_FLOWS]:
        a = one.sides[0]
        ends = escape(a.source), escape(a.destination)
        table.add_row(*ends, one.name, f"{one.packets:,}", f"{one.wire_bytes:,}", escape(one.why))
    out.print(table)
    if len(report.conversations) > _MAX_FLOWS:
        out.print(f"... and {len(report.conversations) - _MAX_FLOWS:,} more flows", style="dim")


def _print_encrypted(out: Console, one: "Conversation") -> None:
    """Print what is known about an encrypted conversation."""
    if not any(side.tracks for side in one.sides):
        return
    out.print()
    for side in one.sides:
        if side.tracks or side.facts.fingerprint:
            out.print(f"[bold]{escape(side.label)}[/]")
        for track in side.tracks:
            gaps = f"with {track.missing:,} missing" if track.missing else "without a gap"
            again = f", {track.repeated:,} repeated" if track.repeated else ""
            out.print(
                f"  {track.records:,} records of epoch {track.epoch}, "
                f"numbered {track.lowest:,} to {track.highest:,} {gaps}{again}"
            )
        if side.facts.fingerprint:
            out.print(f"  its certificate sha-256 {side.facts.fingerprint}")
    if sum(bool(side.tracks) for side in one.sides) > 1:
        out.print("[bold]both ways[/]")
    _print_sizes(out, one)


def _print_sizes(out: Console, one: "Conversation") -> None:
    if one.cipher is not None:
        out.print(f"  {one.cipher.name}: {one.cipher.why}")
    for reading in one.sizes[:_MAX_SIZES]:
        out.print(
            f"  {reading.records:>8,} records of {reading.record_bytes:,} bytes: {reading.meaning}"
        )
    if rest := one.sizes[_MAX_SIZES:]:
        records, sizes = sum(reading.records for reading in rest), len(rest)
        out.print(f"  {records:>8,} others, of {sizes:,} other size{'s' * (sizes > 1)}")


def _print_teaching(out: Console, dialogue: "TeachingDialogue | None") -> None:
    """Print the teaching frames: commands, actions, requests with their answers."""
    if dialogue is None:
        return
    from rote.wire.teaching.codec import CommandId  # noqa: PLC0415 - only where there are such frames

    known = {one.value: one.name.lower().replace("_", " ") for one in CommandId}
    out.print("\n[bold]Teaching frames[/]")
    counts = ("asked", "done", "refused", "unanswered")
    table = _make_table("command", "", *counts, right=counts)
    for command, count in dialogue.commands.items():
        its = [one for one in dialogue.exchanges if one.command == command]
        done, refused = sum(one.code == 0 for one in its), sum(one.refused for one in its)
        silent = len(its) - done - refused
        numbers = (f"{number:,}" for number in (count, done, refused, silent))
        table.add_row(f"0x{command:02x}", known.get(command, "not known"), *numbers)
    out.print(table)
    for verb, names in (
        ("saved", dialogue.saved),
        ("listed", dialogue.listed),
        ("played", dialogue.played),
    ):
        if names:
            out.print(escape(f"actions {verb}: {', '.join(names)}"))
    exchanges = _make_table("at", "command", "asked", "answer")
    for one in dialogue.exchanges[:_MAX_LINES]:
        again = f" (sent {one.sent} times)" if one.sent > 1 else ""
        wait = "" if one.latency_s is None else f" after {one.latency_s * 1000:.0f} ms"
        at = str(one.document()["time"])[11:23]
        answer = escape(f"{one.outcome}{wait}")
        exchanges.add_row(at, f"0x{one.command:02x}", escape(one.request_text) + again, answer)
    out.print(exchanges)
    if rest := dialogue.exchanges[_MAX_LINES:]:
        out.print(f"... and {len(rest):,} more requests: --json has them", style="dim")


def _print_limits(out: Console, lines: list[str]) -> None:
    if not lines:
        return
    out.print("\n[bold]What cannot be known[/]")
    for sentence in lines[:_MAX_SIZES]:
        out.print(f"  {escape(sentence)}")
    if len(lines) > _MAX_SIZES:
        out.print(f"  ... and {len(lines) - _MAX_SIZES:,} more", style="dim")


def _print_timeline(out: Console, lines: "list[TimelineEntry]") -> None:
    if not lines:
        return
    out.print("\n[bold]What probably happened[/]")
    table = _make_table("from", "to", "what", "sure", "evidence", right=("sure",))
    for line in lines[:_MAX_LINES]:
        document = line.document()
        start, end = str(document["start"]), str(document["end"] or "")
        table.add_row(
            start[11:23], end[11:23], line.kind, f"{line.confidence:.0%}", escape(line.evidence)
        )
    out.print(table)
    if len(lines) > _MAX_LINES:
        out.print(f"... and {len(lines) - _MAX_LINES:,} more lines", style="dim")


def _print_tests(out: Console, tests: "list[FieldTest]") -> None:
    if not tests:
        return
    out.print("\n[bold]Bytes offered as commands[/]")
    for test in tests[:_MAX_SIZES]:
        out.print(f"  {escape(test.direction)}, {test.field}: [bold]{test.verdict.kind}[/]")
        out.print(f"    {test.verdict.why}", style="dim")


def _print_decrypted(out: Console, report: "Report") -> None:
    if report.decrypted is None:
        return
    out.print("\n[bold]Decrypted requests[/]")
    for pair in report.decrypted.pairs[:_MAX_LINES]:
        wait = "" if pair.latency_s is None else f" after {pair.latency_s * 1000:.0f} ms"
        request = f"{pair.name} {pair.request.parameter}".rstrip()
        text = harmless(f"  {request}: {pair.outcome}{wait}")
        out.print(text, markup=False)
    out.print(f"  {len(report.decrypted.messages):,} messages in all", style="dim")


def as_csv(report: "Report") -> str:
    """Return the flows as CSV, one a line."""
    columns = (
        "a", "b", "protocol", "name", "packets", "bytes", "packets_a_to_b", "packets_b_to_a",
        "start", "end", "why",
    )  # fmt: skip
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for one in report.conversations:
        writer.writerow(one.document())
    return text.getvalue()


def explain(out: Console, explanation: "Explanation") -> None:
    """Print the comparison, step by step."""
    out.print(f"[bold]{escape(explanation.title)}[/]\n")
    for step in explanation.steps:
        out.print(f"[bold]{step.question}[/]")
        table = _make_table("the seed documents read", "what it is")
        table.columns[0].ratio = table.columns[1].ratio = 1
        table.expand = True
        table.add_row(step.seeds, step.truth)
        out.print(table)
        if step.counted:
            out.print(f"counted here: {escape(step.counted)}", style="green")
        out.print()
    out.print(explanation.conclusion)
