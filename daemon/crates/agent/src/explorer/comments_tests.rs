//! Tests of comments of source files.

use super::*;

#[test]
fn head_comments_describe_the_file() {
    for (path, text, want) in [
        (
            "a.rs",
            "//! Reads all the files.\n//!\n//! More.\nuse x;\n",
            Some((1, "Reads all the files.")),
        ),
        ("a.rs", "// Copyright x\n\n//! Reads all the files.\n", None),
        (
            "a.py",
            "\"\"\"Reads all the files.\n\nMore.\n\"\"\"\n",
            Some((1, "Reads all the files.")),
        ),
        (
            "a.py",
            "#!/usr/bin/env python\n# Copyright me, all rights reserved\n\
             \n'''Reads all the files.'''\n",
            Some((4, "Reads all the files.")),
        ),
        ("a.py", "import os\n\"\"\"Reads all the files.\"\"\"\n", None),
        (
            "a.go",
            "// Copyright 2020 X.\n\n// Package a reads files.\npackage a\n",
            Some((3, "Package a reads files.")),
        ),
        ("a.go", "//go:build linux and more\n\npackage a\n", None),
        (
            "a.c",
            "/*\n * Copyright X\n */\n\n/* Reads all the files. */\n",
            Some((5, "Reads all the files.")),
        ),
        (
            "A.java",
            "/*\n * Licensed to X under the license.\n */\npackage a;\n\n/** Reads all files. */\n",
            None,
        ),
        (
            "a.rb",
            "# frozen_string_literal: true\n\n# Reads all the files.\nclass A\n",
            Some((3, "Reads all the files.")),
        ),
        (
            "a.ts",
            "/* eslint-disable no-x and y */\n/**\n * Reads all the files.\n * @module a\n */\n",
            Some((2, "Reads all the files.")),
        ),
        ("a.ts", "/* never closed by anything", None),
        ("a.ts", "", None),
    ] {
        let found = head_comment(path, text);
        assert_eq!(
            found.as_ref().map(|(line, text)| (*line, text.as_str())),
            want,
            "{path} {text}"
        );
    }
}

/// Definitions: path, text, name, and the line of the definition whose comment is found.
const DEFINITIONS: &[(&str, &str, &str, Option<usize>)] = &[
    (
        "a.rs",
        "/// Starts the main server.\n#[derive(Debug)]\npub struct Server;\n",
        "server",
        Some(3),
    ),
    (
        "a.rs",
        "#[derive(Debug)]\n/// Starts the main server.\npub struct Server;\n",
        "server",
        Some(3),
    ),
    ("a.py", "class Server(Base):\n    \"\"\"Starts the main server.\"\"\"\n", "server", Some(1)),
    (
        "a.py",
        "def server(\n    a: int,\n) -> int:\n    \"\"\"Starts the main server.\"\"\"\n",
        "server",
        Some(1),
    ),
    (
        "a.py",
        "class Server:\n    def run(self):\n        \"\"\"Starts the main server.\"\"\"\n",
        "server",
        None,
    ),
    ("a.go", "// Server starts the main server.\ntype Server struct {\n", "server", Some(2)),
    ("a.go", "// Serve starts the main server.\nfunc (s *App) Serve() error {\n", "serve", Some(2)),
    (
        "a.go",
        "// Serve starts the main server.\nfunc (*App) Serve(x int) error {\n",
        "serve",
        Some(2),
    ),
    (
        "A.java",
        "/**\n * Starts the main server.\n * @since 1\n\
              */\n@Component\npublic final class Server {\n",
        "server",
        Some(6),
    ),
    ("a.ts", "/** Starts the main server. */\nexport default class Server {\n", "server", Some(2)),
    ("a.rb", "# Starts the main server.\nclass X::Server < Base\n", "server", Some(2)),
    (
        "a.cs",
        "/// <summary>\n/// Starts the main server.\n\
             /// </summary>\n[Serializable]\npublic sealed class Server {\n",
        "server",
        Some(5),
    ),
    ("a.c", "/*\n * Starts the main server.\n */\nstruct server {\n", "server", Some(4)),
    (
        "a.ex",
        "defmodule X.Server do\n  @moduledoc \"\"\"\n  Starts the main server.\n  \"\"\"\n",
        "server",
        Some(1),
    ),
    ("a.rs", "pub struct Server;\n", "server", None),
    ("a.rs", "/// Starts the main server.\npub struct Other;\n", "server", None),
    ("a.rs", "/// Starts the main server.\nstruct _Server;\n", "server", None),
    ("a.rs", "", "server", None),
];

#[test]
fn definitions_have_comments() {
    for (path, text, word, want) in DEFINITIONS {
        let found = definition_comment(path, text, &[(*word).to_owned()]);
        assert_eq!(found.as_ref().map(|(line, _)| *line), *want, "{path} {text} {found:?}");
        if let Some((_, comment)) = found {
            assert!(comment.ends_with("the main server."), "{comment}");
        }
    }
}

#[test]
fn nearest_name_wins() {
    let text = "/// A part of the server.\nstruct MyServerPart;\n\
             \n/// The server of it all.\nstruct Server;\n";
    let found = definition_comment("a.rs", text, &["server".to_owned()]);
    assert_eq!(found, Some((5, "The server of it all.".to_owned())));
}
