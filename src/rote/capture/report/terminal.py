"""What `rote capture` prints for people: the report, and the comparison of two readings."""

import csv
import io
import os
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rote.capture.read.packets import replace_unprintable
from rote.platform.console_text import rich_console

if TYPE_CHECKING:
    from rote.capture.decode.teaching_dialogue import TeachingDialogue
    from rote.capture.judge.conversations import Conversation
    from rote.capture.model import TimelineEntry
    from rote.capture.report.explain import Explanation
    from rote.capture.report.report import FieldTest, Report

_MAX_FLOWS, _MAX_LINES, _MAX_SIZES = 20, 40, 6


def make_console() -> Console:
    """Return a console on standard output; a pipe is 200 columns wide unless COLUMNS is set."""
    wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return rich_console(highlight=False, emoji=False, width=200 if wide else None)


def _make_table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        justify = "right" if column in right else "left"
        table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return table


def print_report(out: Console, report: "Report") -> None:
    """Print the report on a capture."""
    document = report.document()
    out.print(f"[bold]{escape(report.name)}[/]  {report.format}")
    seconds = document["seconds"]
    span = "" if seconds is None else f", {seconds:,.1f} s from {document['start']}"
    out.print(f"{document['packets']:,} packets, {document['udp_packets']:,} of UDP{span}")
    counts = ", ".join(f"{count:,} {label}" for label, count in report.accounted.items())
    out.print(escape(counts) or "no packets")
    for label, count in document["tunnels"].items():
        out.print(f"{count:,} packets were read inside {label}")
    for message in document["icmp"][:_MAX_SIZES]:
        quotes = "".join(
            f"; {count:,} quote {packet}" for packet, count in message["quotes"].items()
        )
        out.print(f"{message['packets']:,} {message['message']}{escape(quotes)}")
    records, frames = document["dtls_records"], document["teaching_frames"]
    out.print(f"{records:,} DTLS records; {frames or 'no'} documented teaching frames", end="\n\n")
    for warning in report.warnings:
        out.print(f"[yellow]warning[/] {escape(warning)}")
    _print_flows(out, report)
    for conversation in report.conversations[:_MAX_FLOWS]:
        _print_encrypted(out, conversation)
    _print_teaching(out, report.teaching)
    _print_limits(out, report.limits)
    _print_timeline(out, report.timeline)
    _print_field_tests(out, report.tests)
    _print_decrypted(out, report)


def _print_flows(out: Console, report: "Report") -> None:
    """Print a table of the conversations with the most packets."""
    table = _make_table("from", "to", "what", "packets", "bytes", "why", right=("packets", "bytes"))
    for conversation in sorted(
        report.conversations, key=lambda conversation: -conversation.packets
    )[:_MAX_FLOWS]:
        side = conversation.sides[0]
        ends = escape(side.source), escape(side.destination)
        table.add_row(
            *ends,
            conversation.name,
            f"{conversation.packets:,}",
            f"{conversation.wire_bytes:,}",
            escape(conversation.why),
        )
    out.print(table)
    if len(report.conversations) > _MAX_FLOWS:
        out.print(f"... and {len(report.conversations) - _MAX_FLOWS:,} more flows", style="dim")


def _print_encrypted(out: Console, conversation: "Conversation") -> None:
    """Print the record numbers, certificates and sizes of an encrypted conversation."""
    if not any(side.tracks for side in conversation.sides):
        return
    out.print()
    for side in conversation.sides:
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
    if sum(bool(side.tracks) for side in conversation.sides) > 1:
        out.print("[bold]both ways[/]")
    _print_sizes(out, conversation)


def _print_sizes(out: Console, conversation: "Conversation") -> None:
    if conversation.cipher is not None:
        out.print(f"  {conversation.cipher.name}: {conversation.cipher.why}")
    for reading in conversation.sizes[:_MAX_SIZES]:
        out.print(
            f"  {reading.records:>8,} records of {reading.record_bytes:,} bytes: {reading.meaning}"
        )
    if others := conversation.sizes[_MAX_SIZES:]:
        records, sizes = sum(reading.records for reading in others), len(others)
        out.print(f"  {records:>8,} others, of {sizes:,} other size{'s' * (sizes > 1)}")


def _print_teaching(out: Console, dialogue: "TeachingDialogue | None") -> None:
    """Print the commands, actions and requests in teaching frames, with the robot's answers."""
    if dialogue is None:
        return
    from rote.wire.teaching.codec import CommandId  # noqa: PLC0415 - only where there are such frames

    command_names = {command.value: command.name.lower().replace("_", " ") for command in CommandId}
    out.print("\n[bold]Teaching frames[/]")
    counts = ("asked", "done", "refused", "unanswered")
    table = _make_table("command", "", *counts, right=counts)
    for command, count in dialogue.commands.items():
        same_command = [exchange for exchange in dialogue.exchanges if exchange.command == command]
        done = sum(exchange.code == 0 for exchange in same_command)
        refused = sum(exchange.refused for exchange in same_command)
        unanswered = len(same_command) - done - refused
        numbers = (f"{number:,}" for number in (count, done, refused, unanswered))
        table.add_row(f"0x{command:02x}", command_names.get(command, "not known"), *numbers)
    out.print(table)
    for verb, action_names in (
        ("saved", dialogue.saved),
        ("listed", dialogue.listed),
        ("played", dialogue.played),
    ):
        if action_names:
            out.print(escape(f"actions {verb}: {', '.join(action_names)}"))
    exchanges = _make_table("at", "command", "asked", "answer")
    for exchange in dialogue.exchanges[:_MAX_LINES]:
        again = f" (sent {exchange.sent} times)" if exchange.sent > 1 else ""
        wait = "" if exchange.latency_s is None else f" after {exchange.latency_s * 1000:.0f} ms"
        time_text = str(exchange.document()["time"])[11:23]
        answer = escape(f"{exchange.outcome}{wait}")
        exchanges.add_row(
            time_text, f"0x{exchange.command:02x}", escape(exchange.request_text) + again, answer
        )
    out.print(exchanges)
    if others := dialogue.exchanges[_MAX_LINES:]:
        out.print(f"... and {len(others):,} more requests: --json has them", style="dim")


def _print_limits(out: Console, sentences: list[str]) -> None:
    if not sentences:
        return
    out.print("\n[bold]What cannot be known[/]")
    for sentence in sentences[:_MAX_SIZES]:
        out.print(f"  {escape(sentence)}")
    if len(sentences) > _MAX_SIZES:
        out.print(f"  ... and {len(sentences) - _MAX_SIZES:,} more", style="dim")


def _print_timeline(out: Console, entries: "list[TimelineEntry]") -> None:
    if not entries:
        return
    out.print("\n[bold]What probably happened[/]")
    table = _make_table("from", "to", "what", "sure", "evidence", right=("sure",))
    for entry in entries[:_MAX_LINES]:
        document = entry.document()
        start, end = str(document["start"]), str(document["end"] or "")
        table.add_row(
            start[11:23], end[11:23], entry.kind, f"{entry.confidence:.0%}", escape(entry.evidence)
        )
    out.print(table)
    if len(entries) > _MAX_LINES:
        out.print(f"... and {len(entries) - _MAX_LINES:,} more lines", style="dim")


def _print_field_tests(out: Console, tests: "list[FieldTest]") -> None:
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
        text = replace_unprintable(f"  {request}: {pair.outcome}{wait}")
        out.print(text, markup=False)
    out.print(f"  {len(report.decrypted.messages):,} messages in all", style="dim")


def format_csv(report: "Report") -> str:
    """Return a table of the flows as CSV, one flow per line."""
    columns = (
        "a", "b", "protocol", "name", "packets", "bytes", "packets_a_to_b", "packets_b_to_a",
        "start", "end", "why",
    )  # fmt: skip
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for conversation in report.conversations:
        writer.writerow(conversation.document())
    return text.getvalue()


def print_explanation(out: Console, explanation: "Explanation") -> None:
    """Print the documents' reading of a capture next to the true one, step by step."""
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
