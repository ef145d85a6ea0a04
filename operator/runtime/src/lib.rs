//! What the platform's controllers have in common: how they lead, queue, write, count, and end. Nothing here knows what any of
//! them is about.

pub mod clock;
pub mod error;
pub mod http;
pub mod leader;
pub mod metrics;
pub mod process;
pub mod queue;
pub mod settings;
pub mod synced;
pub mod tenure;
pub mod wire;
pub mod workers;
