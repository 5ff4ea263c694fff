"""The Python client without asyncio, used rightly and wrongly: blocking.py FOLDER. Stops the daemon in the end."""

import json
import sys
import threading

import cairn_client


def failure(attempt):
    try:
        return attempt()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(folder):
    out = {}
    with cairn_client.Cairn() as cairn:
        out["found"] = [(hit["path"], "text" in hit) for hit in cairn.search("open the ledger", root=folder, k=1)]
        nested = cairn.search("open the ledger", root=folder + "/sample", k=1)
        out["nested"] = [hit["path"] for hit in nested]
        out["roots"] = len(cairn.index_status()["roots"])
        out["negative"] = failure(lambda: cairn.search("x", k=-5))
        out["large"] = failure(lambda: cairn.search("x", k=5000))
        out["kind"] = failure(lambda: cairn.search(7))
        out["empty"] = failure(lambda: cairn.search(""))
        out["late"] = failure(lambda: cairn.call("daemon.status", timeout=0.0))
        found = []
        threads = [threading.Thread(target=lambda: found.append(len(cairn.search("ledger", k=2)))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        out["threads"] = found
        run = cairn.explore_start(root=folder)
        kinds = [record["evt"]["type"] for record in cairn.follow(run["sessionId"], to_end=True) if record["kind"] == "Evt"]
        out["last"] = kinds[-1]
        # A loop that is left early leaves the connection usable.
        for _ in cairn.grep_lines(requestId="g", pattern="e"):
            break
        out["after"] = cairn.daemon_status()["pid"] > 0
        cairn.daemon_stop()
    cairn.close()
    out["closed"] = failure(cairn.daemon_status)
    out["absent"] = failure(lambda: cairn_client.Cairn(home="/nonexistent/home", start=False)).split(":")[0]
    out["left"] = [thread.name for thread in threading.enumerate() if thread.name == "cairn-client"]
    print(json.dumps(out))


main(*sys.argv[1:2])
