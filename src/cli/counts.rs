//! What a simulated device counted, as a table or as JSON.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use crate::cli::Context;
use crate::cli::report;

/// The sums of one kernel's launches.
#[derive(Default)]
struct Kernel {
    launches: u64,
    warp_instructions: u64,
    sectors: u64,
    bytes: u64,
    bank_conflicts: u64,
    flops: u64,
    occupancy: f64,
    seconds: f64,
    bound: String,
}

/// Tells the counts of launches: a line for each kernel, the costliest first; as JSON, an object for
/// each launch.
pub fn tell(launches: &[Value], context: &Context) {
    if context.reporter.json {
        report::json_line("stats", &json!({ "launches": launches }));
    } else {
        report::to_stderr(&table(launches));
    }
}

fn table(launches: &[Value]) -> String {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let mut kernels: BTreeMap<&str, Kernel> = BTreeMap::new();
    for launch in launches {
        let name = launch["kernel"].as_str().unwrap_or("?");
        let kernel = kernels.entry(name).or_default();
        kernel.launches += 1;
        kernel.warp_instructions += number(&launch["warp_instructions"]);
        kernel.sectors += number(&launch["sectors_read"]) + number(&launch["sectors_written"]);
        kernel.bytes += number(&launch["bytes_read"]) + number(&launch["bytes_written"]);
        kernel.bank_conflicts += number(&launch["bank_conflicts"]);
        let flops = ["flops", "double_flops", "tensor_flops"];
        kernel.flops += flops.iter().map(|f| number(&launch[*f])).sum::<u64>();
        kernel.occupancy = launch["occupancy"]["fraction"].as_f64().unwrap_or(0.0);
        kernel.seconds += launch["roofline"]["seconds"].as_f64().unwrap_or(0.0);
        let bound = launch["roofline"]["bound"].as_str().unwrap_or("?");
        bound.clone_into(&mut kernel.bound);
    }
    let mut rows: Vec<(&str, Kernel)> = kernels.into_iter().collect();
    rows.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds));
    let mut text = format!(
        "{:>10} {:>8} {:>12} {:>12} {:>7} {:>10} {:>12} {:>6}  {:<10} kernel\n",
        "least us",
        "launches",
        "warp instr",
        "traffic KiB",
        "asked",
        "conflicts",
        "flops",
        "occup",
        "bound by"
    );
    for (name, kernel) in rows {
        // What lanes asked for, of what moved; over 100% where lanes share elements.
        let asked = match kernel.sectors {
            0 => "-".to_owned(),
            sectors => format!(
                "{:.0}%",
                100.0 * kernel.bytes as f64 / (sectors * 32) as f64
            ),
        };
        text.push_str(&format!(
            "{:>10.3} {:>8} {:>12} {:>12.1} {:>7} {:>10} {:>12} {:>5.0}%  {:<10} {name}\n",
            kernel.seconds * 1e6,
            kernel.launches,
            kernel.warp_instructions,
            (kernel.sectors * 32) as f64 / 1024.0,
            asked,
            kernel.bank_conflicts,
            kernel.flops,
            100.0 * kernel.occupancy,
            kernel.bound,
        ));
    }
    text
}
