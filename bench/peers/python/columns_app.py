"""
Columns for analysis, started like the peers of ../peers.ts.

`columns_app.py adbc|connectorx|duckdb` writes the year to PARQUET_FILE at every GET.
`columns_app.py open` fetches the Parquet file at ?url= and opens it as an Arrow table.
The answer is JSON: rows and bytes of the file.
"""

import json
import os
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from io import BytesIO
from threading import Thread
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pyarrow.parquet as pq

from year import year_of_environment


def write_with(way: str) -> Callable[[str], dict[str, int]]:
    write_year = import_module(f"columns_{way}").write_year
    year = year_of_environment()
    path = os.environ["PARQUET_FILE"]

    def write(query: str) -> dict[str, int]:
        rows = write_year(year, path)
        return {"rows": rows, "bytes": os.path.getsize(path)}

    return write


def open_file(query: str) -> dict[str, int]:
    with urlopen(parse_qs(query)["url"][0]) as answer:
        file = answer.read()
    return {"rows": pq.read_table(BytesIO(file)).num_rows, "bytes": len(file)}


def main(way: str) -> None:
    Thread(target=end_with_input, daemon=True).start()
    run = open_file if way == "open" else write_with(way)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(run(urlsplit(self.path).query)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()


def end_with_input() -> None:
    """At once, even amid an answer: connections and files need no farewell."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
