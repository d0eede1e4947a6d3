"""A take as a table: which joints moved, how far and how fast. Needs the extra `pandas`."""

import time

import rote

with rote.sync.connect("sim://g1?store=:memory:") as robot, robot.teach("wave") as take:
    robot.move_by_hand("wave", seconds=3)  # with a real robot, move the arms yourself
    time.sleep(3)

table = take.track.to_pandas()  # a row for each sample, a column in rad for each joint
moved = table.max() - table.min()
moved = moved[moved > 0.1].sort_values(ascending=False)
seconds = table.index.to_series().diff()
fastest = table.diff().div(seconds, axis=0).abs().max()

for joint, angle in moved.items():
    print(f"{joint:28} {angle:5.2f} rad, up to {fastest[joint]:4.1f} rad/s")
table[moved.index].to_csv("wave_arms.csv")
print(f"{len(table)} rows of {len(moved)} joints that moved: wave_arms.csv")
