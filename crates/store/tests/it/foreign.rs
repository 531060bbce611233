//! The store in databases that others wrote. Run with `--profile foreign`.

mod pooler;
mod postgres;
