"""rote demo: teach, save, list and play in half a minute, on a simulated robot behind UDP."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import Json, choice, print_json, refuse_unused_options, run
from rote.cli.wording import worded
from rote.errors import BadRequestError
from rote.messages import HAND_SCRIPTS

if TYPE_CHECKING:
    from rich.console import Console

    from rote.motion.compare import Deviation
    from rote.motion.track import Track
    from rote.robot.robot import Robot
    from rote.robot.take import Take

_STEPS = 7


def demo(
    ctx: typer.Context,
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Folder for the files.")
    ] = Path("rote-demo"),
    hand: Annotated[
        str, typer.Option(metavar=choice(HAND_SCRIPTS), help="What the hand does.")
    ] = "wave",
    seconds: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long the hand moves.")
    ] = 5.0,
    checklist: Annotated[
        bool,
        typer.Option("--checklist", help="Run the documents' verification list instead."),
    ] = False,
    svg: Annotated[
        Path | None, typer.Option(help="Also write the output as an SVG picture.", hidden=True)
    ] = None,
    as_json: Json = False,
) -> int:
    """Teach, save, list and play a motion on a simulated robot.

    The robot is behind UDP. At the end the playback is compared with what was taught.
    """
    if checklist:
        refuse_unused_options(ctx, {"out", "hand", "seconds", "svg"}, "with --checklist")
        return run(_run_checklist(as_json))
    return run(_Demo(out, hand, seconds, svg, as_json).run())


async def _run_checklist(as_json: bool) -> int:
    """Run the documents' verification list on a simulated robot; return 1 if a step fails."""
    from rote.cli import output
    from rote.cli.checklist import Checklist, ChecklistItem
    from rote.sim.presets import add_factory_actions
    from rote.sim.server import Simulator
    from rote.sim.store import Store
    from rote.sim.world import World

    screen = output.console(quiet=as_json)

    def print_item(item: ChecklistItem) -> None:
        if item.part == "sign" and item.number == 1:
            screen.print("\nSigns of success")
        mark = ("pass", "green") if item.passed else ("FAIL", "red")
        screen.print(output.styled(mark, f"  {item.number}. {item.text}: ", (item.found, "dim")))

    store = Store(":memory:")
    add_factory_actions(store)
    simulator = Simulator(World(store))
    try:
        url = await simulator.serve_udp("127.0.0.1", 0)
        screen.print(f"The verification list of the seed documents, frame by frame, at {url}\n")
        result = await Checklist(print_item).run(url)
    finally:
        await simulator.close()
        store.close()
    if as_json:
        print_json(result.document())
    failed = sum(not item.passed for item in (*result.steps, *result.signs))
    screen.print(f"\n{'All passed.' if result.passed else f'{failed} failed.'}")
    return 0 if result.passed else 1


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)  # no parents: a typo must not create folders
    except OSError as error:
        raise BadRequestError(
            f"{folder} cannot be created: {error.strerror}", "Choose another folder with --out."
        ) from None


class _Demo:
    """Runs the steps of the demo, and prints each one."""

    def __init__(
        self, folder: Path, hand: str, seconds: float, svg: Path | None, as_json: bool
    ) -> None:
        from rote.cli import output
        from rote.cli.teach import check_hand
        from rote.robot.api_values import check_seconds

        check_hand(hand)
        _create_folder(folder)
        self._folder = folder
        self._hand = hand
        self._seconds = check_seconds(seconds, "a recording")
        self._svg = svg
        self._as_json = as_json
        self._screen: Console = output.console(
            quiet=as_json, record=svg is not None, width=92 if svg else None
        )
        self._step = 0

    async def run(self) -> None:
        """Run all steps."""
        from rote.cli import output
        from rote.connection import connect
        from rote.sim.server import Simulator
        from rote.sim.store import Store
        from rote.sim.world import World

        store = Store(":memory:")
        simulator = Simulator(World(store))
        try:
            subtitle = ": teach a robot by hand, over UDP on loopback\n"
            self._screen.print(output.styled(("rote demo", "bold"), subtitle))
            url = await simulator.serve_udp("127.0.0.1", 0)
            self._print_step("start", "a simulated G1 listens at ", (url, "bold"))
            async with connect(url) as robot:
                self._print_step(
                    "connect", "control, parameters, subscription, ready: all answered"
                )
                await self._show_state(robot)
                take = await self._teach_motion(robot)
                await self._list_actions(robot)
                played = await self._play_motion(robot)
            self._compare_and_save(take.track, played, take.build.taught)
        finally:
            await simulator.close()
            store.close()

    def _print_step(self, title: str, *parts: str | tuple[str, str]) -> None:
        from rote.cli.output import styled

        self._step += 1
        number = (f"{self._step}/{_STEPS}", "cyan")
        self._screen.print(styled(number, " ", (f"{title:<8}", "bold"), " ", *parts))

    async def _show_state(self, robot: "Robot") -> None:
        mode = await robot.modes.read()
        findings = await robot.preflight()
        ready = "ready to teach" if not findings else f"{len(findings)} findings"
        taught = len((await robot.actions()).taught)
        self._print_step("look", f"mode {mode.id}, {mode.label}; {taught} taught actions; {ready}")

    async def _teach_motion(self, robot: "Robot") -> "Take":
        from rote.cli import output
        from rote.cli.teach import record_for_seconds

        self._print_step("teach", f"the arms are soft; a hand makes a {self._hand} and is recorded")
        async with robot.teach(self._hand) as take:
            await robot.move_by_hand(self._hand, self._seconds)
            await record_for_seconds(self._screen, take, self._seconds)
        track = take.track
        summary = f": {track.duration_s:.2f} s, {len(track)} samples at {track.rate_hz:.0f} Hz"
        self._screen.print(
            output.styled("             the arms hold; saved as ", (take.name, "bold"), summary)
        )
        return take

    async def _list_actions(self, robot: "Robot") -> None:
        names = (f"{a.name} ({a.duration_s:.2f} s)" for a in (await robot.actions()).taught)
        self._print_step("list", "on the robot now: " + ", ".join(names))

    async def _play_motion(self, robot: "Robot") -> "Track":
        """Play the taught motion; return what the robot reported while it played."""
        from rote.cli.play import show_playback
        from rote.messages import Phase, RobotState
        from rote.motion.record import Recorder

        self._print_step("play", "a soft move to the first pose, the motion, a soft return")
        recorder = Recorder(f"play {self._hand}", robot.build)

        def record_playing(state: RobotState) -> None:
            if state.phase is Phase.PLAYING:
                recorder.add(state)

        unsubscribe = robot.on_state(record_playing)
        playing = robot.play(self._hand)
        await show_playback(self._screen, playing)
        report = await playing
        unsubscribe()
        ending = "completed" if report.completed else "stopped before its end"
        self._screen.print(f"             played in {report.seconds:.1f} s, {ending}")
        return recorder.track()

    def _compare_and_save(self, taught: "Track", played: "Track", joints: Sequence[str]) -> None:
        """Compare these joints of the two tracks, and write both tracks, a plot and the result."""
        from rote.motion.compare import deviation
        from rote.motion.files.csv_file import save_csv

        measured = deviation(taught, played, joints)
        files = [self._folder / "taught.csv", self._folder / "played.csv"]
        save_csv(taught, files[0])
        save_csv(played, files[1])
        if plot := self._write_plot(taught, played, measured):
            files.append(plot)
        self._print_step(
            "compare",
            "played against taught: ",
            (f"{measured.rms_rad:.3f} rad", "bold"),
            f" rms, {measured.max_rad:.3f} rad at most",
        )
        self._screen.print("\nWritten: " + ", ".join(str(file) for file in files))
        self._print_next_steps()
        if self._svg is not None:
            self._write_screen(self._svg)
        if self._as_json:
            print_json(
                {
                    "duration_s": round(taught.duration_s, 3),
                    "rms_error_rad": round(measured.rms_rad, 5),
                    "max_error_rad": round(measured.max_rad, 5),
                    "files": [str(file) for file in files],
                }
            )

    def _print_next_steps(self) -> None:
        from rote.cli import output

        rote = "rote" if self._svg else output.find_command_name(sys.argv[0])
        self._screen.print(
            f"\nTry next:\n"
            f"  {rote} teach hello --hand drum --seconds 4\n"
            f"  {rote} play hello --speed 0.5\n"
            f"  {rote} sim --loss 0.3\n"
            f"  {rote} --help\n"
            f"  {rote} web       the same in a web page: teach, edit, check, play",
            style="dim",
        )

    def _write_screen(self, path: Path) -> None:
        """Write everything that was printed to an SVG picture."""
        picture = self._screen.export_svg(title="rote demo")
        # Remove the web fonts: showing the picture must not access the network.
        picture = re.sub(r"@font-face \{[^}]*\}\s*|<!--.*?-->\s*", "", picture, flags=re.DOTALL)
        path.write_text(picture, encoding="utf-8")

    def _write_plot(self, taught: "Track", played: "Track", measured: "Deviation") -> Path | None:
        """Write a plot of both tracks; return its path, or None without the package for plots."""
        from rote.errors import MissingExtraError
        from rote.motion.draw.plot import plot_pair

        path = self._folder / "taught-and-played.png"
        title = (
            f"{self._hand}: taught by hand and played back, "
            f"{measured.rms_rad:.3f} rad rms, {measured.max_rad:.3f} rad at most"
        )
        try:
            plot_pair(taught, played, path, title=title, lag_s=measured.lag_s)
        except MissingExtraError as error:
            self._screen.print(
                f"             no plot: {error}. {worded(error.remedy)}", style="yellow"
            )
            return None
        return path
