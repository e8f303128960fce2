//! Verifying a bundle, in three depths: its rules and this host; its results against recorded ones;
//! its results against the reference evaluator's, computed from the module it carries.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::bundle;
use crate::bundle::Bundle;
use crate::driver::arrays::ArrayFile;
use crate::driver::arrays::Partition;
use crate::driver::arrays::Verdict;
use crate::driver::bundles;
use crate::driver::closeness::Closeness;
#[cfg(feature = "loader")]
use crate::driver::closeness::Making;
#[cfg(feature = "loader")]
use crate::driver::run;
#[cfg(feature = "loader")]
use crate::driver::run::LoadOptions;
#[cfg(feature = "loader")]
use crate::driver::run::Session;
use crate::executable::check;
#[cfg(feature = "loader")]
use crate::literal::ArrayLiteral;

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
    pub closeness: Closeness,
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
    /// Why no stock runtime runs it, or what it would do; empty when one does.
    pub obstacles: Vec<String>,
    /// All of it in a few words.
    pub summary: String,
}

/// Verifies a bundle.
///
/// # Errors
/// `XA7001` to `XA7003` when it cannot be read, and what loading and running give.
pub fn verify(bytes: &[u8], request: &VerifyRequest) -> Result<VerifyReport> {
    let bundle = bundles::read(bytes)?;
    let mut report = VerifyReport {
        findings: check::check(&bundle.executable),
        ..VerifyReport::default()
    };
    report.notes.push("structure: checked".to_owned());
    "sound".clone_into(&mut report.summary);
    let prepared = match request.any_host {
        true => None,
        false => {
            let prepared = prepare(&bundle, request, &mut report.findings)?;
            report.notes.push("host: checked".to_owned());
            report.summary.push_str(", runs on this host");
            prepared
        }
    };
    let stock = bundle::stock(&bundle, bytes)?;
    report
        .notes
        .push(format!("stock runtimes: {}", stock.text()));
    let obstacles = stock.obstacles.iter();
    report.obstacles = obstacles
        .map(|why| format!("{}: {why}", stock.runtime))
        .collect();
    if report.findings.is_empty() && request.has_inputs {
        compare(&bundle, prepared, request, &mut report)?;
    }
    Ok(report)
}

/// A program, ready to run.
#[cfg(feature = "loader")]
type Prepared = Session;
#[cfg(not(feature = "loader"))]
type Prepared = ();

/// Whether the bundle runs here, judged as `run` does: by loading it. Nothing of it runs.
#[cfg(feature = "loader")]
fn prepare(
    bundle: &Bundle,
    request: &VerifyRequest,
    findings: &mut Vec<Diagnostic>,
) -> Result<Option<Prepared>> {
    if findings.is_empty() {
        return match Session::of(bundle, &request.load) {
            Ok(session) => Ok(Some(session)),
            Err(finding) => {
                findings.push(*finding);
                Ok(None)
            }
        };
    }
    findings.extend(run::judge(bundle, &request.load)?.1);
    Ok(None)
}

#[cfg(not(feature = "loader"))]
fn prepare(
    bundle: &Bundle,
    _: &VerifyRequest,
    findings: &mut Vec<Diagnostic>,
) -> Result<Option<Prepared>> {
    let host = crate::driver::host::probe_cpu();
    findings.extend(crate::driver::host::check(bundle, &host));
    Ok(None)
}

#[cfg(feature = "loader")]
fn compare(
    bundle: &Bundle,
    prepared: Option<Prepared>,
    request: &VerifyRequest,
    report: &mut VerifyReport,
) -> Result<()> {
    use crate::driver::arrays;
    let session = match prepared {
        Some(session) => session,
        None => Session::of(bundle, &request.load)?,
    };
    let inputs = session.read_inputs(&request.inputs, Partition::ONLY)?;
    let got = session.run_alike(inputs.clone())?;
    let (wanted, makings, judge) = match &request.expected {
        Some(file) => {
            let wanted = vec![session.read_expected(file)?; got.len()];
            (wanted, Vec::new(), "the file has them")
        }
        None => {
            let (wanted, makings) = evaluate(bundle, inputs)?;
            (wanted, makings, "the reference evaluator has them")
        }
    };
    report.verdicts = arrays::judge_each(&got, &wanted, &request.closeness, &makings)?;
    let count = report.verdicts.len();
    let said = match report.verdicts.iter().filter(|v| !v.passed).count() {
        0 => format!(", results as {judge}"),
        bad => format!(", but {bad} of {count} results not as {judge}"),
    };
    report.summary.push_str(&said);
    Ok(())
}

#[cfg(not(feature = "loader"))]
fn compare(_: &Bundle, _: Option<Prepared>, _: &VerifyRequest, _: &mut VerifyReport) -> Result<()> {
    let message =
        "this program was built without the `cpu` and `cuda` features and runs no bundles";
    Err(Diagnostic::unsupported(
        crate::base::codes::NO_DEVICE,
        message,
    ))
}

/// The results of each device, and how they are made.
#[cfg(feature = "loader")]
type Evaluated = (Vec<Vec<ArrayLiteral>>, Vec<Making>);

#[cfg(all(feature = "loader", feature = "reference"))]
fn evaluate(bundle: &Bundle, inputs: Vec<ArrayLiteral>) -> Result<Evaluated> {
    let evaluation = crate::driver::evaluate::Evaluation::of_bundle(bundle)?;
    Ok((evaluation.run_alike(inputs)?, evaluation.makings()))
}

#[cfg(all(feature = "loader", not(feature = "reference")))]
fn evaluate(_: &Bundle, _: Vec<ArrayLiteral>) -> Result<Evaluated> {
    let message = "this program was built without the reference evaluator";
    Err(
        Diagnostic::unsupported(crate::base::codes::EVAL_UNSUPPORTED, message)
            .help("give expected results with --expect"),
    )
}
