"""Reports that arrive on the topics of a data channel."""

from rote.session.recognition import Identity
from rote.transport.services.connection import RpcConnection
from rote.transport.services.reports import RobotReports
from rote.wire.services import rpc
from rote.wire.services.lowstate import (
    BMS_TOPIC,
    LOWSTATE_TOPIC,
    SPORT_TOPIC,
    decode_battery,
    decode_fsm,
    decode_lowstate,
    select,
)
from rote.wire.webrtc import channel


class ChannelReports(RobotReports):
    """Decodes messages of a data channel."""

    def __init__(self, identity: Identity, connection: RpcConnection) -> None:
        super().__init__(identity)
        connection.on_faults(self.note_faults)
        connection.on_topic(LOWSTATE_TOPIC, self._on_joints)
        connection.on_topic(SPORT_TOPIC, self._on_mode)
        connection.on_topic(rpc.ARM_STATE_TOPIC, self._on_arm_state)
        connection.on_topic(BMS_TOPIC, self._on_battery)

    def _on_joints(self, message: channel.ChannelMessage) -> None:
        slots = decode_lowstate(message.data)
        self._recognise_motors(slots.mode_machine, len(slots.joints_rad))
        self._note_joints(select(slots, self.build))

    def _on_mode(self, message: channel.ChannelMessage) -> None:
        self.note_mode(decode_fsm(message.data))

    def _on_arm_state(self, message: channel.ChannelMessage) -> None:
        data = message.data
        self.note_arms(
            rpc.decode_arm_state(data) if isinstance(data, str) else rpc.read_arm_state(data)
        )

    def _on_battery(self, message: channel.ChannelMessage) -> None:
        self._battery = decode_battery(message.data)
