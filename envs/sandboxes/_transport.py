"""The docker SDK's unix-socket transport with two faults mended.

The SDK keeps a pool of connections per URL (every container has URLs of its own, so nothing is ever reused and
descriptors pile up), and leaves a socket open when it cannot connect. Here all calls share one pool; attach
streams, whose connections cannot be reused, have their own.
"""

from __future__ import annotations

import socket
from typing import Any

from docker.transport import unixconn


class _Connection(unixconn.UnixHTTPConnection):
    def connect(self) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(self.timeout)
            sock.connect(self.unix_socket)
        except BaseException:
            sock.close()
            raise
        self.sock = sock


class _Pool(unixconn.UnixHTTPConnectionPool):
    def _new_conn(self) -> Any:
        return _Connection(self.base_url, self.socket_path, self.timeout)  # type: ignore[arg-type]


class _Adapter(unixconn.UnixHTTPAdapter):
    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        key = "attach" if b"/attach" in (url if isinstance(url, bytes) else str(url).encode()) else "calls"
        with self.pools.lock:
            pool = self.pools.get(key)
            if pool is None:
                pool = self.pools[key] = _Pool(
                    url, self.socket_path, self.timeout, maxsize=self.max_pool_size
                )
        return pool


def mend(api: Any) -> Any:
    """Give an APIClient on a unix socket this transport; others are left as they are. Returns it."""
    adapter = getattr(api, "_custom_adapter", None)
    if isinstance(adapter, unixconn.UnixHTTPAdapter):
        ours = _Adapter(f"http+unix://{adapter.socket_path}", adapter.timeout, max_pool_size=16)
        adapter.close()
        api._custom_adapter = ours
        api.mount("http+docker://", ours)
    return api
