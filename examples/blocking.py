"""The same without `await`: for scripts, notebooks, and people in a hurry."""

import time

import rote

with rote.sync.connect("sim://g1?store=:memory:") as robot:
    with robot.teach("drum") as take:
        robot.move_by_hand("drum", seconds=2)
        time.sleep(2)
    print([action.name for action in robot.actions().taught])

    playing = robot.start("drum", loop=True)
    time.sleep(3)
    playing.stop()  # softly, and the robot is usable again
    print("completed:", playing.wait().completed)
