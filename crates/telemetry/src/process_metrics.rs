//! Resource usage of this process, as far as the system reports it.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};
use rialto_model::clock::Timestamp;

/// Linux counts CPU time in hundredths of a second wherever this program runs (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Collector that reads usage at scrape time.
#[derive(Debug)]
pub(crate) struct ProcessMetrics {
    started_at: Timestamp,
}

/// Usage reported by the system.
#[derive(Debug, Default, PartialEq)]
struct ProcessUsage {
    cpu_seconds: Option<f64>,
    resident_bytes: Option<u64>,
}

// === impl ProcessMetrics ===

impl ProcessMetrics {
    /// A process that started at this moment.
    pub(crate) const fn new(started_at: Timestamp) -> Self {
        Self { started_at }
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let usage = ProcessUsage::read();
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

// === impl ProcessUsage ===

impl ProcessUsage {
    fn read() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self::parse(&text("/proc/self/stat"), &text("/proc/self/status"))
    }

    fn parse(stat: &str, status: &str) -> Self {
        // The program's name is in parentheses and may contain any character.
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks = |at: usize| fields.split_whitespace().nth(at)?.parse::<f64>().ok();
        let cpu_seconds = ticks(11).zip(ticks(12)).map(|(user, system)| (user + system) / TICKS_PER_SECOND);
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
        let usage = ProcessUsage::parse(stat, "Name:\tx\nVmRSS:\t    2048 kB\n");
        assert_eq!(usage, ProcessUsage { cpu_seconds: Some(2.0), resident_bytes: Some(2 * 1024 * 1024) });
        assert_eq!(ProcessUsage::parse("", ""), ProcessUsage::default());
    }
}
