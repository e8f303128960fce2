//! Verifying a bundle, in three depths: its rules and this host; its results against recorded ones;
//! its results against the reference evaluator's, computed from the module it carries.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::Severity;
use crate::bundle;
use crate::bundle::Bundle;
use crate::driver::arrays::ArrayFile;
use crate::driver::arrays::Verdict;
use crate::driver::host;
#[cfg(feature = "loader")]
use crate::driver::run;
#[cfg(feature = "loader")]
use crate::driver::run::LoadOptions;
#[cfg(feature = "loader")]
use crate::driver::run::Session;
use crate::executable::check;
#[cfg(feature = "loader")]
use crate::literal::ArrayLiteral;
use crate::literal::compare::Tolerance;
use crate::target::HostInfo;

/// What to verify.
#[derive(Debug, Default)]
pub struct VerifyRequest {
    /// Inputs to run on.
    pub inputs: Vec<ArrayFile>,
    /// Whether to run at all.
    pub has_inputs: bool,
    /// Results to compare with, instead of the evaluator's.
    pub expected: Option<ArrayFile>,
    /// How close results must be.
    pub tolerance: Tolerance,
    /// Whether to leave this host out of it.
    pub any_host: bool,
    /// How it is loaded.
    #[cfg(feature = "loader")]
    pub load: LoadOptions,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Broken rules and reasons why it does not run here; empty when all is well.
    pub findings: Vec<Diagnostic>,
    /// What the comparison of each result says.
    pub verdicts: Vec<Verdict>,
    /// What was looked at.
    pub notes: Vec<String>,
    /// All of it in a few words.
    pub summary: String,
}

/// Verifies a bundle.
///
/// # Errors
/// `XA7001` to `XA7003` when it cannot be read, and what loading and running give.
pub fn verify(bytes: &[u8], request: &VerifyRequest) -> Result<VerifyReport> {
    let bundle = bundle::read(bytes)?;
    let mut report = VerifyReport {
        findings: check::check(&bundle.executable),
        ..VerifyReport::default()
    };
    report.notes.push("structure: checked".to_owned());
    "sound".clone_into(&mut report.summary);
    if !request.any_host {
        for finding in host::check(&bundle, &host_of(&bundle, request)?) {
            if finding.severity == Severity::Warning {
                report.notes.push(finding.to_string());
            } else {
                report.findings.push(finding);
            }
        }
        report.notes.push("host: checked".to_owned());
        report.summary.push_str(", runs on this host");
    }
    if report.findings.is_empty() && request.has_inputs {
        compare(&bundle, request, &mut report)?;
    }
    Ok(report)
}

#[cfg(feature = "loader")]
fn host_of(bundle: &Bundle, request: &VerifyRequest) -> Result<HostInfo> {
    run::host_of(bundle, &request.load)
}

#[cfg(not(feature = "loader"))]
fn host_of(_: &Bundle, _: &VerifyRequest) -> Result<HostInfo> {
    Ok(host::probe())
}

#[cfg(feature = "loader")]
fn compare(bundle: &Bundle, request: &VerifyRequest, report: &mut VerifyReport) -> Result<()> {
    use crate::driver::arrays;
    let session = Session::of(bundle, &request.load)?;
    let inputs = session.read_inputs(&request.inputs)?;
    let got = session.run_leaves(&inputs)?;
    let wanted = match &request.expected {
        Some(file) => session.read_expected(file)?,
        None => evaluate(bundle, inputs)?,
    };
    report.verdicts = arrays::judge(&got, &wanted, &request.tolerance)?;
    let judge = if request.expected.is_some() {
        "the expected results"
    } else {
        "the reference evaluator"
    };
    report
        .summary
        .push_str(&format!(", results as {judge} has them"));
    Ok(())
}

#[cfg(not(feature = "loader"))]
fn compare(_: &Bundle, _: &VerifyRequest, _: &mut VerifyReport) -> Result<()> {
    let message =
        "this program was built without the `cpu` and `cuda` features and runs no bundles";
    Err(Diagnostic::unsupported(
        crate::base::codes::NO_DEVICE,
        message,
    ))
}

#[cfg(all(feature = "loader", feature = "reference"))]
fn evaluate(bundle: &Bundle, inputs: Vec<ArrayLiteral>) -> Result<Vec<ArrayLiteral>> {
    crate::driver::evaluate::Evaluation::of_bundle(bundle)?.run_leaves(inputs)
}

#[cfg(all(feature = "loader", not(feature = "reference")))]
fn evaluate(_: &Bundle, _: Vec<ArrayLiteral>) -> Result<Vec<ArrayLiteral>> {
    let message = "this program was built without the reference evaluator";
    Err(
        Diagnostic::unsupported(crate::base::codes::EVAL_UNSUPPORTED, message)
            .help("give expected results with --expect"),
    )
}
