//! The daemon under failures of the machine: power cuts, kills, writes that fail, clocks that jump,
//! folders that disappear. The guide's table of failures names these tests.

mod disk;
mod folders;
mod kills;
mod power_cut;
mod start;
mod workload;
mod write_faults;
