"""One example for each command, shown at the end of its help."""

from collections.abc import Mapping

EXAMPLES: Mapping[str, str] = {
    command: f"{command} {arguments}".rstrip()
    for command, _, arguments in (
        line.partition(" | ")
        for line in """
demo | --hand bow
batch check | recordings --out checked
batch convert | 'data/**/*.npz' --to .mcap --out converted
batch fit | dances --out playable
batch preview | recordings --base free --out simulated
web | --robot webrtc://ap
stop | --robot webrtc://ap
status | --robot webrtc://ap
discover | --seconds 5
doctor | --robot webrtc://ap
modes | stand
robots | g1-29
trial | --robot webrtc://ap --level look
trial compare | mine.json theirs.json
trial schema
teach | wave --hand wave --seconds 3
list | --robot webrtc://ap
play | wave --speed 0.5
rename | wave hello
delete | wave
takes list | hello
takes show | wave
takes tag | wave --add hello
takes rename | wave hello
takes delete | wave
takes restore | wave
takes import | dance.csv --as unitree-csv
takes export | wave wave.csv
motion info | wave.mcap
motion check | wave.mcap
motion compare | wave.mcap played.mcap
motion best | one.mcap two.mcap three.mcap
motion compress | wave.mcap --budget 20
motion lerobot | wave.mcap --out dataset --task wave
motion plot | wave.mcap --out wave.png
motion spread | one.mcap two.mcap --out band.png
motion show | wave.mcap --out wave.png
motion trim | wave.mcap cut.mcap --auto
motion smooth | wave.mcap smooth.mcap
motion speed | wave.mcap slow.mcap --factor 0.5
motion retime | wave.mcap calm.mcap
motion mirror | wave.mcap mirrored.mcap
motion reverse | wave.mcap back.mcap
motion resample | wave.mcap even.mcap
motion close-loop | wave.mcap loop.mcap
motion keep | wave.mcap arm.mcap --joint left_arm
motion drop | wave.mcap arm.mcap --joint left_arm
motion to-build | wave.mcap small.mcap --build g1-23
motion keyframe | wave.mcap higher.mcap --time 1.2 --joint right_elbow=0.9
motion through | wave.mcap higher.mcap --at 1.2 --joint right_elbow=0.9
motion to-robot | wave.mcap wave-r1.mcap --robot r1
motion move-hand | wave.mcap higher.mcap --hand right --by 0,0,0.05
motion warp | wave.mcap later.mcap --move 1.2=1.5
motion beat | marked.mcap danced.mcap --bpm 120
motion segments | wave.mcap parts.mcap
motion keep-part | parts.mcap part-2.mcap --label "part 2"
motion fit | wave.mcap fitted.mcap
motion mark | wave.mcap marked.mcap --time 1.2 --label top
motion change-mark | marked.mcap moved.mcap --time 1.2 --to 1.5
motion remove-mark | marked.mcap plain.mcap --time 1.2
motion cross-fade | wave.mcap bow.mcap both.mcap
motion concatenate | wave.mcap bow.mcap both.mcap
motion blend | wave.mcap bow.mcap between.mcap
motion layer | wave.mcap drum.mcap both.mcap --joint left_arm
motion average | one.mcap two.mcap --out mean.mcap
motion merge | one.mcap two.mcap --from 1.5=2 --out both.mcap
motion learn | one.mcap two.mcap three.mcap --out wave.model
motion adapt | wave.model new.mcap --through '1.5: 0.35,-0.2,0.3'
motion convert | wave.mcap wave.csv
motion recover | wave.mcap.part wave.mcap
preview | wave.mcap
store | wave.mcap wave
sim | --webrtc 127.0.0.1
mirror | sim://g1 sim://g1 --mirrored --hand wave --seconds 10
show schema
show check | show.json
show run | show.json --cast cast.json
show rehearse | show.json --cast cast.json
show sheet | show.json --html
show lock | show.json
show unlock | show.json
show stop
show reset
show offsets | left wave 0.4
show report | show-report.json
stage new | stage --at 192.168.1.10:7447
stage router | stage/router-1
stage invite | left
stage renew
stage revoke | left
stage status
stage demo
agent | webrtc://ap --join left.json
watch | --foxglove
ros | --robot webrtc://ap
mcp
completion | bash
a1 status | --robot a1://192.168.123.161
a1 monitor | --seconds 10
a1 walk | 0.5
a1 turn | 90
a1 stand
a1 lie
a1 pose | --pitch 10 --seconds 2
a1 decode | -
capture report | phone.pcap --html report.html
capture explain | phone.pcap
capture field | phone.pcap 10
capture packets | phone.pcap --first 10
capture live | --interface wlan0 --seconds 60
capture make | phone.pcap
capture scrub | phone.pcap share.pcap
capture dissector | rote.lua
frame decode | -
frame make | play --action 1
send | list
applog | app.log
""".strip().splitlines()
    )
}
"""By the words of a command, the whole line after `rote`."""
