//! Definitions by name, outlines of files, and the definitions around a range of lines.
