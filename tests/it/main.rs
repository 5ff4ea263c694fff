//! One binary of integration tests: the house rules, and the daemon as a stranger meets it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod browser;
mod chat;
mod commands;
mod contents;
mod crash;
mod editor;
mod follow;
mod foreign;
mod fresh;
mod golden;
mod home;
mod http;
mod kinds;
mod limits;
mod mcp;
mod network;
mod outside;
mod paths;
mod policy;
mod remote;
mod sdks;
mod sealed;
mod service;
mod shell;
mod shellmode;
mod stdio;
mod telemetry;
mod terminal;
mod tidy;
mod traces;
mod viewer;
mod ways;
mod web;
mod wire;
