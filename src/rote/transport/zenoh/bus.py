"""The bus of a stage, on Eclipse Zenoh: the conductor's process is the router, agents are clients.

Zenoh calls from threads of its own; what is received is handed to the event loop, with one wake-up
for all that has come. Whoever hears many collects instead: then no thread waits for the
interpreter. Nothing is found by multicast, and shared memory and the admin space are off. A session
that is not closed keeps its process from ending: `close` is safe to repeat.
"""

import asyncio
import contextlib
import json
import os
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rote.errors import BadRequestError, LinkError, MissingExtraError
from rote.transport.udp.link import host_and_port

PORT = 7447
LEASE_MS = 1000
"""A partner that is silent for so long is gone."""
_COLLECTED = 4096
"""So many messages wait to be collected at most; then the oldest are dropped."""
_ALERT_S = 0.5
"""Timeout for the alert by which a conductor refuses a certificate after the handshake."""
_HANDSHAKE_S = 3.0
Listener = Callable[[str, bytes], None]
Answerer = Callable[[str, bytes], bytes | None]


@dataclass(frozen=True, slots=True)
class Credentials:
    """The files by which one side of a stage proves who it is."""

    authority: Path
    """The certificate that all certificates of the stage are signed with."""
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Grant:
    """What the owner of a certificate may do; everything else is denied."""

    name: str
    """The common name of the certificate."""
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    token: tuple[str, ...] = ()
    listeners: tuple[str, ...] = ()
    """Subscriptions of others that it is told of, as they were made: with their wild cards. Whoever
    publishes and is not told of a subscription sends nothing to it."""


class StageBus:
    """One session with the bus."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._kept: list[Any] = []
        self._publishers: dict[str, Any] = {}
        self._closed = False
        self._calls: list[Callable[[], None]] = []
        """What Zenoh's threads have for the event loop."""
        self._lock = threading.Lock()

    @classmethod
    async def conduct(
        cls,
        endpoint: str,
        credentials: Credentials | None = None,
        grants: tuple[Grant, ...] = (),
    ) -> "StageBus":
        """Open the router, which listens at `endpoint` ("127.0.0.1:7447").

        Without credentials nothing is encrypted and everybody may do everything: that is for this
        computer alone, and refused for any other address.
        """
        settings = _settings("router", credentials)
        settings["listen/endpoints"] = [_locator(endpoint, credentials)]
        if credentials is not None:
            settings["access_control"] = _access(grants)
        return cls(await _open(settings))

    @classmethod
    async def join(cls, endpoint: str, credentials: Credentials | None = None) -> "StageBus":
        """Connect to the conductor at `endpoint`. Raises `LinkError` if nobody is there."""
        settings = _settings("client", credentials)
        settings["connect/endpoints"] = [_locator(endpoint, credentials)]
        settings["connect/timeout_ms"] = 3000
        return cls(await _open(settings))

    def publish(self, key: str, data: bytes) -> None:
        """Publish; never waits for the network."""
        if key not in self._publishers:
            self.announce(key)
        self._publishers[key].put(data)

    def announce(self, key: str, *, urgent: bool = False) -> None:
        """Make ready to publish under `key`, so that the first message is as quick as the others.

        What is urgent overtakes what waits to be sent.
        """
        import zenoh  # noqa: PLC0415 - heavy

        self._publishers[key] = self._session.declare_publisher(
            key,
            express=True,
            congestion_control=zenoh.CongestionControl.DROP,
            priority=zenoh.Priority.REAL_TIME if urgent else zenoh.Priority.DATA,
        )

    def subscribe(self, key: str, listener: Listener, *, newest: bool = False) -> None:
        """Call `listener` in the event loop with each message: its key and its bytes.

        With `newest`, for messages that say everything, one that waits for the loop is replaced by
        a newer one of its key: a flood keeps the loop from nothing else.
        """
        waiting: dict[str, bytes] = {}
        lock = threading.Lock()

        def received(sample: Any) -> None:
            which, data = str(sample.key_expr), bytes(sample.payload)
            self._call(lambda: listener(which, data))

        def deliver(which: str) -> None:
            with lock:
                data = waiting.pop(which)
            listener(which, data)

        def replaced(sample: Any) -> None:
            which, data = str(sample.key_expr), bytes(sample.payload)
            with lock:
                is_new = which not in waiting
                waiting[which] = data
            if is_new:
                self._call(lambda: deliver(which))

        handler = _at_once(replaced if newest else received)
        self._kept.append(self._session.declare_subscriber(key, handler))

    def collect(self, key: str) -> Callable[[], dict[str, bytes]]:
        """Return a function that takes what has come: the newest message of each key, by key.

        That is for one who hears many: a message wakes nobody, and no thread of Zenoh's ever waits
        for the interpreter.
        """
        import zenoh  # noqa: PLC0415 - heavy

        channel: Any = zenoh.handlers.RingChannel(_COLLECTED)
        subscriber = self._session.declare_subscriber(key, channel)
        self._kept.append(subscriber)

        def take() -> dict[str, bytes]:
            found = {}
            for _ in range(_COLLECTED):
                sample = None if self._closed else subscriber.try_recv()
                if sample is None:
                    break
                found[str(sample.key_expr)] = sample.payload
            return {which: bytes(payload) for which, payload in found.items()}

        return take

    def answer(self, key: str, answerer: Answerer) -> None:
        """Answer questions, in a thread of its own: `answerer` must be thread-safe.

        One that returns None does not answer. A long answer waits for the network, so it must not
        hold a thread that receives.
        """

        def asked(query: Any) -> None:
            payload = query.payload
            with query:
                data = answerer(str(query.key_expr), b"" if payload is None else bytes(payload))
                if data is not None:
                    query.reply(query.key_expr, data)

        self._kept.append(self._session.declare_queryable(key, asked))

    async def ask(self, key: str, timeout_s: float, data: bytes = b"") -> bytes:
        """Return the first answer. Raises `LinkError` if there is none in time."""
        answered: asyncio.Future[bytes] = self._loop.create_future()

        def settle(value: bytes) -> None:
            if not answered.done():
                answered.set_result(value)

        self.ask_for(key, timeout_s, lambda value: self._call(lambda: settle(value)), data)
        try:
            return await asyncio.wait_for(answered, timeout_s + 0.1)
        except TimeoutError:
            raise LinkError(f"nobody on the stage has answered {key}") from None

    def ask_for(
        self, key: str, timeout_s: float, answered: Callable[[bytes], None], data: bytes = b""
    ) -> None:
        """Ask, and call `answered` in a thread of Zenoh's as soon as an answer arrives."""

        def replied(reply: Any) -> None:
            if reply.ok is not None:
                answered(bytes(reply.ok.payload))

        self._session.get(key, _at_once(replied), payload=data, timeout=timeout_s, express=True)

    def declare(self, key: str) -> None:
        """Show under `key` that this session is there, until it ends."""
        self._kept.append(self._session.liveliness().declare_token(key))

    def watch(self, key: str, listener: Callable[[str, bool], None]) -> None:
        """Call `listener` in the event loop with a key and whether its session is there."""
        import zenoh  # noqa: PLC0415 - heavy

        def seen(sample: Any) -> None:
            which, is_there = str(sample.key_expr), sample.kind == zenoh.SampleKind.PUT
            self._call(lambda: listener(which, is_there))

        self._kept.append(
            self._session.liveliness().declare_subscriber(key, _at_once(seen), history=True)
        )

    async def close(self) -> None:
        """End the session, so that this process can end."""
        if not self._closed:
            self._closed = True
            self._kept.clear()
            self._publishers.clear()
            await asyncio.to_thread(self._session.close)

    def _call(self, what: Callable[[], None]) -> None:
        """Call `what` in the event loop. Only the first of those that wait wakes the loop."""
        with self._lock:
            self._calls.append(what)
            is_first = len(self._calls) == 1
        if is_first and not self._closed and not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(self._call_all)
            except RuntimeError:
                return  # the loop was closed just now

    def _call_all(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, []
        for call in calls:
            try:
                call()
            except Exception as error:  # one listener's fault is not another's
                self._loop.call_exception_handler(
                    {"message": "a listener of the stage has failed", "exception": error}
                )


async def find_refusal(endpoint: str, credentials: Credentials | None) -> str:
    """Return which certificate is refused when this computer joins the stage at `endpoint`, and
    why; "" if none is, or nothing listens there.

    Zenoh reports only a timeout, so this tries a TLS handshake of its own.
    """
    if credentials is None:
        return ""
    host, port = host_and_port(endpoint, PORT)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the authority signs for this stage alone
    try:
        context.load_verify_locations(credentials.authority)
        context.load_cert_chain(credentials.certificate, credentials.key)
    except ssl.SSLError as error:
        return f"the certificate of this computer cannot be used: {_words(error)}"
    try:
        async with asyncio.timeout(_HANDSHAKE_S):
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
            try:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1), _ALERT_S)
            finally:
                writer.close()
    except ssl.SSLCertVerificationError as error:
        return f"this computer refuses the certificate of the conductor: {error.verify_message}"
    except ssl.SSLError as error:
        return f"the conductor refuses the certificate of this computer: {_words(error)}"
    except OSError:  # a TimeoutError, too: nothing listens there
        return ""
    return ""


def _words(error: ssl.SSLError) -> str:
    """Return the reason of an error of TLS: "certificate expired"."""
    reason = error.reason or str(error)
    return reason.lower().rpartition("_alert_")[2].replace("_", " ")


def _at_once(callback: Callable[[Any], None]) -> Any:
    """Return a handler that is called in the thread that receives, not in another one for each
    subscription and question. So it must be quick, and for messages that are few.
    """
    import zenoh  # noqa: PLC0415 - heavy

    return zenoh.handlers.Callback(callback, indirect=False)


def _settings(mode: str, credentials: Credentials | None) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "mode": mode,
        "scouting/multicast/enabled": False,
        "scouting/gossip/enabled": False,
        "transport/shared_memory/enabled": False,
        "transport/link/tx/lease": LEASE_MS,
        "transport/link/tx/keep_alive": 4,
        "adminspace/enabled": False,
    }
    if credentials is not None:
        side = "listen" if mode == "router" else "connect"
        settings["transport/link/tls"] = {
            "root_ca_certificate": str(credentials.authority),
            f"{side}_certificate": str(credentials.certificate),
            f"{side}_private_key": str(credentials.key),
            "enable_mtls": True,
            "verify_name_on_connect": False,
        }
    return settings


def _locator(endpoint: str, credentials: Credentials | None) -> str:
    host, port = host_and_port(endpoint, PORT)
    if credentials is None and host not in ("127.0.0.1", "::1", "localhost"):
        raise BadRequestError(
            f"a stage at {host} needs certificates: anybody there could move the robots",
            "Make a stage with certificates.",
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{'tcp' if credentials is None else 'tls'}/{shown}:{port}"


def _access(grants: tuple[Grant, ...]) -> dict[str, Any]:
    """Return Zenoh's table of who may do what; whatever is not in it is denied."""
    rules, subjects, policies = [], [], []

    def add(
        who: str, label: str, flows: list[str], messages: list[str], keys: tuple[str, ...]
    ) -> None:
        if keys:
            name = f"{who}-{label}"
            rules.append(
                {
                    "id": name,
                    "permission": "allow",
                    "flows": flows,
                    "messages": messages,
                    "key_exprs": list(keys),
                }
            )
            policies.append({"rules": [name], "subjects": [who]})

    for grant in grants:
        subjects.append({"id": grant.name, "cert_common_names": [grant.name]})
        both = ["ingress", "egress"]
        add(grant.name, "publish", ["ingress"], ["put"], grant.publish)
        # Who publishes is told who listens; without it all but the first message stay at home.
        told = (*grant.publish, *grant.listeners)
        add(grant.name, "listeners", ["egress"], ["declare_subscriber"], told)
        add(grant.name, "hear", ["egress"], ["put"], grant.subscribe)
        add(grant.name, "subscribe", ["ingress"], ["declare_subscriber"], grant.subscribe)
        add(grant.name, "ask", ["ingress"], ["query"], grant.ask)
        add(grant.name, "hear-answer", ["egress"], ["reply"], grant.ask)
        add(grant.name, "answerers", ["egress"], ["declare_queryable"], grant.ask)
        add(grant.name, "asked", ["egress"], ["query"], grant.answer)
        add(grant.name, "answer", ["ingress"], ["declare_queryable", "reply"], grant.answer)
        add(
            grant.name,
            "token",
            both,
            ["liveliness_token", "declare_liveliness_subscriber", "liveliness_query"],
            grant.token,
        )
    return {
        "enabled": True,
        "default_permission": "deny",
        "rules": rules,
        "subjects": subjects,
        "policies": policies,
    }


async def _open(settings: Mapping[str, Any]) -> Any:
    try:
        import zenoh  # noqa: PLC0415 - heavy
    except ImportError:
        raise MissingExtraError("a stage", "stage") from None
    if "RUST_LOG" in os.environ:  # to see what Zenoh itself refuses: RUST_LOG=zenoh_link_tls=warn
        zenoh.try_init_log_from_env()  # type: ignore[no-untyped-call]
    config = zenoh.Config()
    for key, value in settings.items():
        config.insert_json5(key, json.dumps(value))
    try:
        return await asyncio.to_thread(zenoh.open, config)
    except zenoh.ZError as error:
        text = str(error).split(" at ")[0][:200]
        raise LinkError(f"the stage cannot be reached or opened: {text}") from None
