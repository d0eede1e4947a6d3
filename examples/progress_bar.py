"""A progress bar while a motion plays. Ctrl-C stops the robot softly."""

import time

from rich.progress import Progress

import rote

with rote.sync.connect("sim://g1?store=:memory:") as robot:
    with robot.teach("clap"):  # the arms are soft inside the block
        robot.move_by_hand("clap", seconds=2)  # with a real robot, move them yourself
        time.sleep(2)

    playing = robot.start("clap")
    try:
        with Progress() as bar:
            task = bar.add_task("clap", total=1.0)
            for progress in playing:
                bar.update(task, completed=progress.fraction, description=f"{progress.phase:<8}")
    except KeyboardInterrupt:
        playing.stop()
    report = playing.wait()
    print("completed:", report.completed)
