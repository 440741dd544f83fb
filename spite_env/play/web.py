"""A page to play at, served to this machine alone.

The address of a table holds a random name, which is all that a request needs to reach it: so reloading keeps the game,
and two pages have two tables. The page gets pictures and texts of what its seat may see, and draws no card by itself.

====  ============================  ==================================================================================
GET   ``/``, ``/table/NAME``        the page; it opens a table if its address names none
GET   ``/api/agents``               the agents' names, and those that play and give hints unless a page wants others
POST  ``/api/tables``               opens a table: ``{"opponent": .., "seat": .., "match": .., "seed": ".."}``, all of
                                    which may be left out
GET   ``/api/tables/NAME``          the table
GET   ``/api/tables/NAME/records``  the records of the games (or matches) that are over, one a line
POST  ``/api/tables/NAME/play``     ``{"revision": .., "action": ..}``
POST  ``/api/tables/NAME/undo``     ``{"revision": ..}``
POST  ``/api/tables/NAME/hint``     ``{"revision": .., "agent": ".."}``
POST  ``/api/tables/NAME/new``      ``{"revision": ..}``, and what opens a table
====  ============================  ==================================================================================

A request names the revision of the table that it was made for. So nothing is done twice, nor at a table that has gone
on: then the answer has status 409. A request that is refused changes nothing, and its answer says why in ``error``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from spite_env.play.tables import Table, Tables, View
from spite_env.record import show

try:
    import waitress
    from flask import Flask, Response, abort, make_response, request
    from werkzeug.exceptions import HTTPException
except ImportError as error:
    raise ImportError("the page needs Flask and waitress: pip install 'spite_env[play]'") from error

#: Where the page is served.
HOST = "127.0.0.1"

#: Bytes that a request's body and its head may have.
MOST_BODY, MOST_HEAD = 4096, 16_384

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

#: What opens a table.
_CHOICE = {"opponent": str, "seat": int, "match": bool, "seed": str}

_KINDS = {str: "a text", int: "an integer", bool: "true or false"}


def create_app(tables: Tables) -> Flask:
    """Return the web application."""
    app = Flask(__name__, static_folder="page", static_url_path="/page")
    app.config["MAX_CONTENT_LENGTH"] = MOST_BODY
    app.config["TRUSTED_HOSTS"] = [HOST, "localhost"]  # another site's name may be made to mean this machine

    @app.before_request
    def refuse_other_sites() -> None:
        if request.method == "POST":
            origin = request.headers.get("Origin")
            if origin not in (None, request.host_url.rstrip("/")):
                abort(403, f"a page of {origin[:100]} can't play here")
            if request.mimetype != "application/json":
                abort(415, f"the body must be application/json, not {request.mimetype[:100] or 'nothing'}")

    @app.after_request
    def add_headers(response: Response) -> Response:
        response.headers.update(_HEADERS)
        return response

    @app.errorhandler(HTTPException)
    def explain(error: HTTPException) -> tuple[View, int]:
        return {"error": error.description}, error.code or 500

    @app.get("/")
    @app.get("/table/<name>")
    def page(name: str = "") -> Response:
        return app.send_static_file("index.html")

    @app.get("/api/agents")
    def agents() -> View:
        return {"agents": tables.agents, "opponent": tables.against, "hint": tables.hint}

    @app.post("/api/tables")
    def open_table() -> tuple[View, int]:
        body = _body(_CHOICE)
        try:
            name, table = tables.open(body)
        except ValueError as error:
            abort(400, str(error))
        with table.lock:
            return {"name": name, **table.view()}, 201

    @app.get("/api/tables/<name>")
    def show_table(name: str) -> View:
        table = found(name)
        with table.lock:
            return {**table.view(), "frames": []}

    @app.get("/api/tables/<name>/records")
    def records(name: str) -> Response:
        table = found(name)
        with table.lock:
            lines = [json.dumps(record, separators=(",", ":")) + "\n" for record in table.records]
        attachment = {"Content-Disposition": "attachment; filename=games.jsonl"}
        return Response(lines, mimetype="application/x-ndjson", headers=attachment)

    @app.post("/api/tables/<name>/<any(play, undo, hint, new):deed>")
    def do(name: str, deed: str) -> View:
        fields, act = _DEEDS[deed]
        body = _body({"revision": int, **fields})
        table = found(name)
        with table.lock:
            if body["revision"] != table.revision:
                error = "this was for the table as it was before: it has changed since"
                abort(make_response({"error": error, "table": table.view()}, 409))
            try:
                told = act(table, body)
            except ValueError as error:
                abort(400, str(error))
            return {**table.view(), "told": told}

    def found(name: str) -> Table:
        table = tables.find(name)
        if table is None:
            abort(404, "there is no such table, or it has been closed: open a new one")
        return table

    return app


def serve(tables: Tables, port: int) -> None:
    """Serve the page until an interrupt, and close the tables.

    Args:
        tables: The tables.
        port: The port; 0 takes a free one.

    Raises:
        OSError: the port can't be used.
    """
    try:
        server = waitress.create_server(
            create_app(tables),
            host=HOST,
            port=port,
            threads=8,
            max_request_body_size=4 * MOST_BODY,  # what is only a little too large gets the answer of the application
            max_request_header_size=MOST_HEAD,
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(f"port {port} can't be used: {reason}; take another one by --port, 0 for any free one") from error
    try:
        print(f"Play at http://{HOST}:{server.effective_port}/ (Ctrl-C stops it)", flush=True)
        server.run()
    finally:
        server.close()
        tables.close()


#: What can be done at a table: what a request has to hold beside the revision, and the doing, which may tell something.
_DEEDS: dict[str, tuple[Mapping[str, type], Callable[[Table, View], str | None]]] = {
    "play": ({"action": int}, lambda table, body: table.play(body["action"])),
    "undo": ({}, lambda table, body: table.undo()),
    "hint": ({"agent": str}, lambda table, body: table.hint(body.get("agent"))),
    "new": (_CHOICE, lambda table, body: table.new(body)),
}

_REQUIRED = ("revision", "action")


def _body(fields: Mapping[str, type]) -> View:
    """Return the request's body; abort the request if it is not an object with these fields."""
    try:
        body = json.loads(request.get_data())
    except (ValueError, RecursionError):
        abort(400, "the body is no JSON")
    if type(body) is not dict:
        abort(400, f"the body is {show(body)}; it must be an object")
    for name, value in body.items():
        if name not in fields:
            abort(400, f"unknown field {show(name)}; the fields are {', '.join(fields) or 'none'}")
        if type(value) is not fields[name]:
            abort(400, f"{name}={show(value)} is not allowed; it is {_KINDS[fields[name]]}")
    for name in fields:
        if name not in body and name in _REQUIRED:
            abort(400, f"the field {name!r} is missing")
    return body
