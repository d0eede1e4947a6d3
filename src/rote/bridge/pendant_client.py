"""A client of a running pendant, over HTTP with the token of one of its links."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

from rote.errors import BadRequestError, LinkError, NotApprovedError

_TIMEOUT_S = 30.0


class PendantClient:
    """Reads the status of a pendant, and proposes motions to it."""

    def __init__(self, link: str) -> None:
        """`link` is a link that the pendant printed: its address with `?token=...`."""
        try:
            parts = urlsplit(link)
            token = parse_qs(parts.query).get("token", [""])[0]
            is_web_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
        except ValueError:
            is_web_address, token = False, ""
        if not is_web_address or not token:
            raise BadRequestError(
                "this is not a pendant's link",
                "Use the watching link that the pendant printed, with its ?token=...",
            )
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._token = token
        # No proxy from the environment: only this pendant may receive the token.
        self._client = httpx2.AsyncClient(base_url=self.url, timeout=_TIMEOUT_S, trust_env=False)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def get(self, path: str) -> dict[str, Any]:
        """Return the pendant's answer to a GET request under `/api`.

        Raises `LinkError` without an answer, and `NotApprovedError` if the pendant refuses.
        """
        return await self._request("GET", path, None)

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        """Post `body` as JSON, and return the answer; raises the same errors as `get`."""
        return await self._request("POST", path, body)

    async def _request(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            answer = await self._client.request(method, f"/api{path}", headers=headers, json=body)
        except (httpx2.HTTPError, OSError) as error:
            raise LinkError(
                f"the pendant at {self.url} does not answer: {error or type(error).__name__}",
                "Ask a person to start it with access for agents.",
            ) from None
        document = _parse_document(answer.content)
        if answer.status_code != 200:
            message = str(document.get("message") or f"the pendant answers {answer.status_code}")
            raise NotApprovedError(message, str(document.get("remedy") or ""))
        return document


def _parse_document(data: bytes) -> dict[str, Any]:
    """Return the JSON object in an answer; empty if there is none."""
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
