//! What this process takes from the machine. Where the system does not tell, there are fewer numbers.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};
use rialto_model::clock::Timestamp;

/// Linux counts CPU time in hundredths of a second wherever this program runs (`USER_HZ`).
const TICKS: f64 = 100.0;

/// Asks the system when somebody wants to know.
#[derive(Debug)]
pub(crate) struct Process {
    started_at: Timestamp,
}

/// What the system tells.
#[derive(Debug, Default, PartialEq)]
struct Usage {
    cpu_seconds: Option<f64>,
    resident_bytes: Option<u64>,
}

// === impl Process ===

impl Process {
    /// A process that started at this moment.
    pub(crate) const fn started(started_at: Timestamp) -> Self {
        Self { started_at }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let usage = Usage::read();
        if let Some(seconds) = usage.cpu_seconds {
            let help = "CPU time this process has used";
            encoder
                .encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?
                .encode_counter::<NoLabelSet, _, f64>(&seconds, None)?;
        }
        if let Some(bytes) = usage.resident_bytes {
            let help = "Memory this process has in use";
            encoder
                .encode_descriptor("process_resident_memory_bytes", help, None, MetricType::Gauge)?
                .encode_gauge(&bytes)?;
        }
        let help = "When this process started, in seconds since 1970";
        encoder
            .encode_descriptor("process_start_time_seconds", help, None, MetricType::Gauge)?
            .encode_gauge(&self.started_at.as_second())?;
        let help = "What this program is";
        encoder
            .encode_descriptor("rialto_build", help, None, MetricType::Info)?
            .encode_info(&[("version", env!("CARGO_PKG_VERSION"))])
    }
}

// === impl Usage ===

impl Usage {
    fn read() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self::parse(&text("/proc/self/stat"), &text("/proc/self/status"))
    }

    fn parse(stat: &str, status: &str) -> Self {
        // The program's name may hold anything, and stands in brackets.
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks = |at: usize| fields.split_whitespace().nth(at)?.parse::<f64>().ok();
        let cpu_seconds = ticks(11).zip(ticks(12)).map(|(user, system)| (user + system) / TICKS);
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        Self { cpu_seconds, resident_bytes: kilobytes.map(|kilobytes| kilobytes * 1024) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_past_a_strange_name_and_nothing_is_made_up() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 9 0 0 0 150 50 0 0 20 0 4 0 99 1 2";
        let usage = Usage::parse(stat, "Name:\tx\nVmRSS:\t    2048 kB\n");
        assert_eq!(usage, Usage { cpu_seconds: Some(2.0), resident_bytes: Some(2 * 1024 * 1024) });
        assert_eq!(Usage::parse("", ""), Usage::default());
    }
}
