"""The bus of a stage, on Eclipse Zenoh: agents are clients of one or several routers.

Without routers of its own a stage uses the conductor's process as its only one.

Zenoh calls back on threads of its own; received messages are handed to the event loop, with one
wake-up for all waiting messages. A receiver of many messages uses `collect` instead: then no thread
waits for the interpreter. Multicast discovery, shared memory and the admin space are off. A session
that is not closed keeps its process from ending: `close` is safe to repeat.
"""

import asyncio
import contextlib
import json
import os
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rote.errors import BadRequestError, LinkError, MissingExtraError
from rote.platform.atomic_file import appearing
from rote.transport.address import host_and_port

PORT = 7447
ROUTER_FILE = "zenoh.json5"
"""The configuration of a router, in Zenoh's own format."""
LEASE_MS = 1000
"""A peer that is silent for this long counts as gone."""
_MAX_COLLECTED = 4096
"""Maximum number of messages waiting to be collected; then the oldest are dropped."""
_ALERT_S = 0.5
"""Timeout for the alert by which a conductor refuses a certificate after the handshake."""
_HANDSHAKE_S = 3.0
_ALL_CERTIFICATES = "*"
"""The subject of access rules for all certificates; no certificate has this name."""
Listener = Callable[[str, bytes], None]
Answerer = Callable[[str, bytes], bytes | None]


@dataclass(frozen=True, slots=True)
class Credentials:
    """The files with which one side of a stage authenticates."""

    authority: Path
    """The certificate that all certificates of the stage are signed with."""
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Grant:
    """What the owner of a certificate may do; everything else is denied."""

    name: str
    """The common name of the certificate; "" for all certificates of the stage."""
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    token: tuple[str, ...] = ()
    listeners: tuple[str, ...] = ()
    """Subscriptions of others that are declared to it, with their wild cards. A publisher that does
    not know a subscription sends nothing to it."""


class StageBus:
    """One session with the bus."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._declarations: list[Any] = []
        self._publishers: dict[str, Any] = {}
        self._closed = False
        self._calls: list[Callable[[], None]] = []
        """Calls that Zenoh's threads hand to the event loop."""
        self._lock = threading.Lock()

    @classmethod
    async def conduct(
        cls,
        endpoint: str,
        credentials: Credentials | None = None,
        grants: tuple[Grant, ...] = (),
    ) -> Self:
        """Open the router, which listens at `endpoint` ("127.0.0.1:7447").

        Without credentials nothing is encrypted and every client may do everything: that is allowed
        only on this computer, and refused for any other address.
        """
        settings = _make_settings("router", credentials)
        settings["listen"] = {"endpoints": [_make_locator(endpoint, credentials)]}
        if credentials is not None:
            settings["access_control"] = _make_access_rules(grants)
        return cls(await _open_session(settings))

    @classmethod
    async def join(cls, endpoint: str, credentials: Credentials | None = None) -> "StageBus":
        """Connect to the router at `endpoint`, or to one of several, separated by commas.

        Raises `LinkError` if none can be reached.
        """
        settings = _make_settings("client", credentials)
        locators = [_make_locator(each, credentials) for each in endpoint.split(",")]
        settings["connect"] = {"endpoints": locators, "timeout_ms": 3000}
        return cls(await _open_session(settings))

    @classmethod
    async def route(cls, folder: Path) -> "StageBus":
        """Open a router with the configuration that `write_router` has written to `folder`.

        Raises `BadRequestError` if there is none, and `LinkError` if its port is in use.
        """
        path = folder / ROUTER_FILE
        try:
            settings = json.loads(path.read_text("utf-8"))
            tls = settings["transport"]["link"]["tls"]
            settings["transport"]["link"]["tls"] = {
                name: str(folder / value) if isinstance(value, str) else value
                for name, value in tls.items()
            }
        except OSError as error:
            raise BadRequestError(
                f"{path} cannot be read: {error.strerror}",
                "Name the folder of a router of this stage.",
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadRequestError(f"{path} is not the configuration of a router: {error}") from None
        return cls(await _open_session(settings))

    async def is_alive(self, key: str, timeout_s: float) -> bool:
        """Return whether a session is alive that has declared `key`."""

        def find() -> bool:
            replies = self._session.liveliness().get(key, timeout=timeout_s)
            return any(reply.ok is not None for reply in replies)

        return await asyncio.to_thread(find)

    def publish(self, key: str, data: bytes) -> None:
        """Publish; never waits for the network."""
        if key not in self._publishers:
            self.announce(key)
        self._publishers[key].put(data)

    def announce(self, key: str, *, urgent: bool = False) -> None:
        """Prepare to publish under `key`, so that the first message is as fast as the others.

        Urgent messages overtake messages that wait to be sent.
        """
        import zenoh  # noqa: PLC0415 - heavy

        self._publishers[key] = self._session.declare_publisher(
            key,
            express=True,
            congestion_control=zenoh.CongestionControl.DROP,
            priority=zenoh.Priority.REAL_TIME if urgent else zenoh.Priority.DATA,
        )

    def subscribe(
        self, key: str, listener: Listener, *, newest: bool = False, own: bool = True
    ) -> None:
        """Call `listener` in the event loop with each message: its key and its bytes.

        With `newest`, for messages that are complete in themselves, a waiting message is replaced
        by a newer one of its key, so that a flood of messages does not block the loop. Unless
        `own`, the messages of this session are left out.
        """
        import zenoh  # noqa: PLC0415 - heavy

        waiting: dict[str, bytes] = {}
        lock = threading.Lock()

        def on_message(sample: Any) -> None:
            sample_key, data = str(sample.key_expr), bytes(sample.payload)
            self._call_in_loop(lambda: listener(sample_key, data))

        def deliver(sample_key: str) -> None:
            with lock:
                data = waiting.pop(sample_key)
            listener(sample_key, data)

        def on_replaceable_message(sample: Any) -> None:
            sample_key, data = str(sample.key_expr), bytes(sample.payload)
            with lock:
                is_new = sample_key not in waiting
                waiting[sample_key] = data
            if is_new:
                self._call_in_loop(lambda: deliver(sample_key))

        handler = _make_direct_handler(on_replaceable_message if newest else on_message)
        origin = zenoh.Locality.ANY if own else zenoh.Locality.REMOTE
        self._declarations.append(
            self._session.declare_subscriber(key, handler, allowed_origin=origin)
        )

    def collect(self, key: str) -> Callable[[], dict[str, bytes]]:
        """Return a function that takes the received messages: the newest message of each key.

        Use it for many messages: a message does not wake the event loop, and no thread of Zenoh
        waits for the interpreter.
        """
        import zenoh  # noqa: PLC0415 - heavy

        channel: Any = zenoh.handlers.RingChannel(_MAX_COLLECTED)
        subscriber = self._session.declare_subscriber(key, channel)
        self._declarations.append(subscriber)

        def take() -> dict[str, bytes]:
            newest = {}
            for _ in range(_MAX_COLLECTED):
                sample = None if self._closed else subscriber.try_recv()
                if sample is None:
                    break
                newest[str(sample.key_expr)] = sample.payload
            return {sample_key: bytes(payload) for sample_key, payload in newest.items()}

        return take

    def answer(self, key: str, answerer: Answerer) -> None:
        """Answer queries in a separate thread: `answerer` must be thread-safe.

        If it returns None, no answer is sent. A long answer waits for the network, so it must not
        block a thread that receives.
        """

        def on_query(query: Any) -> None:
            payload = query.payload
            with query:
                data = answerer(str(query.key_expr), b"" if payload is None else bytes(payload))
                if data is not None:
                    query.reply(query.key_expr, data)

        self._declarations.append(self._session.declare_queryable(key, on_query))

    async def ask(self, key: str, timeout_s: float, data: bytes = b"") -> bytes:
        """Return the first answer. Raises `LinkError` if there is none in time."""
        answered: asyncio.Future[bytes] = self._loop.create_future()

        def set_answer(value: bytes) -> None:
            if not answered.done():
                answered.set_result(value)

        self.ask_for(
            key, timeout_s, lambda value: self._call_in_loop(lambda: set_answer(value)), data
        )
        try:
            return await asyncio.wait_for(answered, timeout_s + 0.1)
        except TimeoutError:
            raise LinkError(f"no program on the stage has answered {key}") from None

    def ask_for(
        self, key: str, timeout_s: float, on_answer: Callable[[bytes], None], data: bytes = b""
    ) -> None:
        """Send a query, and call `on_answer` in a thread of Zenoh as soon as an answer arrives."""

        def on_reply(reply: Any) -> None:
            if reply.ok is not None:
                on_answer(bytes(reply.ok.payload))

        self._session.get(
            key, _make_direct_handler(on_reply), payload=data, timeout=timeout_s, express=True
        )

    def declare(self, key: str) -> Callable[[], None]:
        """Declare under `key` that this session is alive, until it ends.

        Return a function that withdraws the declaration.
        """
        token = self._session.liveliness().declare_token(key)
        self._declarations.append(token)

        def withdraw() -> None:
            if token in self._declarations:
                self._declarations.remove(token)
                token.undeclare()

        return withdraw

    def watch(self, key: str, listener: Callable[[str, bool], None]) -> None:
        """Call `listener` in the event loop with a key and whether its session is alive."""
        import zenoh  # noqa: PLC0415 - heavy

        def on_presence(sample: Any) -> None:
            sample_key, is_alive = str(sample.key_expr), sample.kind == zenoh.SampleKind.PUT
            self._call_in_loop(lambda: listener(sample_key, is_alive))

        self._declarations.append(
            self._session.liveliness().declare_subscriber(
                key, _make_direct_handler(on_presence), history=True
            )
        )

    async def close(self) -> None:
        """End the session, so that this process can end."""
        if not self._closed:
            self._closed = True
            self._declarations.clear()
            self._publishers.clear()
            await asyncio.to_thread(self._session.close)

    def _call_in_loop(self, call: Callable[[], None]) -> None:
        """Queue `call` for the event loop. Only the first queued call wakes the loop."""
        with self._lock:
            self._calls.append(call)
            is_first = len(self._calls) == 1
        if is_first and not self._closed and not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(self._run_calls)
            except RuntimeError:
                return  # the loop was closed just now

    def _run_calls(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, []
        for call in calls:
            try:
                call()
            except Exception as error:  # the other listeners must still be called
                self._loop.call_exception_handler(
                    {"message": "a listener of the stage has failed", "exception": error}
                )


async def find_refusal(endpoint: str, credentials: Credentials | None) -> str:
    """Try a TLS handshake with the stage at `endpoint`; return which certificate is refused, and
    why. Returns "" if none is refused or the port is closed. Of several endpoints, the first
    is tried.

    Zenoh itself reports only a timeout.
    """
    if credentials is None:
        return ""
    host, port = host_and_port(endpoint.partition(",")[0], PORT)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the authority signs for this stage alone
    try:
        context.load_verify_locations(credentials.authority)
        context.load_cert_chain(credentials.certificate, credentials.key)
    except ssl.SSLError as error:
        return f"the certificate of this computer cannot be used: {_describe_tls_error(error)}"
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
        return (
            f"the conductor refuses the certificate of this computer: {_describe_tls_error(error)}"
        )
    except OSError:  # a TimeoutError, too: nothing listens there
        return ""
    return ""


def _describe_tls_error(error: ssl.SSLError) -> str:
    """Return the reason of a TLS error, for example "certificate expired"."""
    reason = error.reason or str(error)
    return reason.lower().rpartition("_alert_")[2].replace("_", " ")


def _make_direct_handler(callback: Callable[[Any], None]) -> Any:
    """Return a handler that is called in the receiving thread, not in another thread for each
    subscription and query. It must be fast, and is only for infrequent messages.
    """
    import zenoh  # noqa: PLC0415 - heavy

    return zenoh.handlers.Callback(callback, indirect=False)


def _make_settings(mode: str, credentials: Credentials | None) -> dict[str, Any]:
    link: dict[str, Any] = {"tx": {"lease": LEASE_MS, "keep_alive": 4}}
    if credentials is not None:
        side = "listen" if mode == "router" else "connect"
        link["tls"] = {
            "root_ca_certificate": str(credentials.authority),
            f"{side}_certificate": str(credentials.certificate),
            f"{side}_private_key": str(credentials.key),
            "enable_mtls": True,
            "verify_name_on_connect": False,
        }
    return {
        "mode": mode,
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "transport": {"shared_memory": {"enabled": False}, "link": link},
        "adminspace": {"enabled": False},
    }


def write_router(
    path: Path, endpoint: str, others: Sequence[str], grants: tuple[Grant, ...]
) -> None:
    """Write the configuration of a router that listens at `endpoint` and connects to the others.

    Its certificates are files beside it: `authority.pem`, `router.pem` and `router.key`.
    """
    credentials = Credentials(Path("authority.pem"), Path("router.pem"), Path("router.key"))
    settings = _make_settings("router", credentials)
    settings["transport"]["link"]["tls"] |= {
        "connect_certificate": str(credentials.certificate),
        "connect_private_key": str(credentials.key),
    }
    settings["listen"] = {"endpoints": [_make_locator(endpoint, credentials)]}
    settings["connect"] = {"endpoints": [_make_locator(each, credentials) for each in others]}
    settings["access_control"] = _make_access_rules(grants)
    with appearing(path, private=True) as file:
        file.write(json.dumps(settings, indent=1).encode())


def _make_locator(endpoint: str, credentials: Credentials | None) -> str:
    host, port = host_and_port(endpoint, PORT)
    if credentials is None and host not in ("127.0.0.1", "::1", "localhost"):
        raise BadRequestError(
            f"a stage at {host} needs certificates: any host there could move the robots",
            "Create a stage with certificates.",
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{'tcp' if credentials is None else 'tls'}/{shown}:{port}"


def _make_access_rules(grants: tuple[Grant, ...]) -> dict[str, Any]:
    """Return Zenoh's access rules: each certificate may do what its grant names, nothing else.

    Ingress is from a client to the router, egress from the router to a client.
    """
    rules, subjects, policies = [], [], []

    def allow(
        subject: str, label: str, flows: list[str], messages: list[str], keys: tuple[str, ...]
    ) -> None:
        subject = subject or _ALL_CERTIFICATES
        if keys:
            name = f"{subject}-{label}"
            rules.append(
                {
                    "id": name,
                    "permission": "allow",
                    "flows": flows,
                    "messages": messages,
                    "key_exprs": list(keys),
                }
            )
            policies.append({"rules": [name], "subjects": [subject]})

    for grant in grants:
        common_names = {"cert_common_names": [grant.name]} if grant.name else {}
        subjects.append({"id": grant.name or _ALL_CERTIFICATES, **common_names})
        both = ["ingress", "egress"]
        allow(grant.name, "publish", ["ingress"], ["put"], grant.publish)
        # A publisher must know the subscriptions; otherwise only its first message is sent.
        announced = (*grant.publish, *grant.listeners)
        allow(grant.name, "learn-subscribers", ["egress"], ["declare_subscriber"], announced)
        allow(grant.name, "receive", ["egress"], ["put"], grant.subscribe)
        allow(grant.name, "subscribe", ["ingress"], ["declare_subscriber"], grant.subscribe)
        allow(grant.name, "ask", ["ingress"], ["query"], grant.ask)
        allow(grant.name, "receive-answer", ["egress"], ["reply"], grant.ask)
        allow(grant.name, "learn-queryables", ["egress"], ["declare_queryable"], grant.ask)
        allow(grant.name, "receive-query", ["egress"], ["query"], grant.answer)
        allow(grant.name, "answer", ["ingress"], ["declare_queryable", "reply"], grant.answer)
        allow(
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


async def _open_session(settings: Mapping[str, Any]) -> Any:
    try:
        import zenoh  # noqa: PLC0415 - heavy
    except ImportError:
        raise MissingExtraError("a stage", "stage") from None
    if "RUST_LOG" in os.environ:  # to see what Zenoh itself refuses: RUST_LOG=zenoh_link_tls=warn
        zenoh.try_init_log_from_env()  # type: ignore[no-untyped-call]
    config = zenoh.Config.from_json5(json.dumps(settings))
    try:
        return await asyncio.to_thread(zenoh.open, config)
    except zenoh.ZError as error:
        text = str(error).split(" at ")[0][:200]
        raise LinkError(f"the stage cannot be reached or opened: {text}") from None
