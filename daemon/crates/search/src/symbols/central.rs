//! Which files the rest of the code refers to most.
