//! The verbs that look into passes: `passes` and `bisect`.

use serde_json::json;

use crate::cli::Context;
use crate::cli::args::RewriteArgs;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
use crate::cli::report;
use crate::driver::compile;
use crate::driver::compile::PassOptions;

impl RewriteArgs {
    /// Which optional rewrites are made.
    pub fn options(&self) -> Outcome<PassOptions> {
        let options = PassOptions {
            disabled_passes: self.disable_pass.iter().cloned().collect(),
            disabled_rules: self.disable_rule.iter().cloned().collect(),
            fuel: self.fuel,
        };
        compile::check_rewrites(&options).map_err(Failure::Option)?;
        Ok(options)
    }
}

/// `xla-aot passes`
pub fn passes(context: &Context) -> Outcome {
    let rows = compile::pass_list();
    if context.reporter.json {
        let rows = rows.iter().map(
            |(name, rules)| json!({"name": name, "rules": rules, "optional": !rules.is_empty()}),
        );
        let rows: Vec<_> = rows.collect();
        return report::json_result(&json!({"schema": report::SCHEMA, "passes": rows}));
    }
    let mut text = String::new();
    for (name, rules) in rows {
        text.push_str(name);
        text.push_str(if rules.is_empty() {
            "  (required)\n"
        } else {
            "\n"
        });
        for rule in rules {
            text.push_str(&format!("  {rule}\n"));
        }
    }
    report::to_stdout(&text)
}

/// `xla-aot bisect`
#[cfg(feature = "loader")]
pub fn bisect(args: &crate::cli::args::Bisect, context: &Context) -> Outcome {
    use crate::cli::comparing::closeness;
    use crate::cli::comparing::read_inputs;
    use crate::cli::exit;
    use crate::cli::exit::about;
    use crate::cli::files;
    use crate::cli::programs::resolve;
    use crate::driver::bisect::BisectRequest;
    use crate::driver::bisect::Finding;
    use crate::driver::bisect::bisect;
    use crate::driver::compile::CompileOptions;
    use crate::driver::run::DeviceChoice;
    let input = args.what.options()?;
    let mut target = args.target.clone();
    // The name of a simulated GPU is the name of the target it is.
    if let (true, DeviceChoice::Simulated(Some(name))) = (target.is_empty(), &args.device.device) {
        target.target.push(name.clone());
    }
    let targets = resolve(&target)?;
    let [target] = targets.as_slice() else {
        let message = "one target at a time can be looked into";
        return Err(Failure::Usage(message.to_owned()));
    };
    let name = files::shown(&args.program);
    let program = files::read_program(&args.program)?;
    let request = BisectRequest {
        compile: CompileOptions {
            input,
            rewrites: args.rewrites.options()?,
            ..CompileOptions::new(target.clone())
        },
        load: args.device.options()?,
        inputs: read_inputs(&args.input, &args.program, &program)?,
        closeness: closeness(&args.tolerance),
    };
    let finding = bisect(&program, &request).map_err(about(&name))?;
    let (result, text) = match &finding {
        Finding::Agrees { rewrites } => (
            json!({"agrees": true, "rewrites": rewrites}),
            format!("{name}: agrees with the evaluator, with {rewrites} optional rewrites\n"),
        ),
        Finding::Rewrite {
            rewrite,
            difference,
        } => (
            json!({
                "agrees": false, "difference": difference, "number": rewrite.number,
                "pass": rewrite.pass, "rule": rewrite.rule, "instruction": rewrite.instruction,
            }),
            format!(
                "{name}: {difference}\nwrong from rewrite {} on: pass `{}`, rule `{}`, of\n  {}\n",
                rewrite.number, rewrite.pass, rewrite.rule, rewrite.instruction
            ),
        ),
        Finding::Required { pass, difference } => (
            json!({"agrees": false, "difference": difference, "pass": pass}),
            match pass {
                Some(pass) => format!(
                    "{name}: {difference}\nwrong without optional rewrites, after pass `{pass}`\n"
                ),
                None => format!(
                    "{name}: {difference}\nwrong without optional rewrites, and the evaluator \
                     finds no pass guilty: look at what comes after them\n"
                ),
            },
        ),
    };
    if context.reporter.json {
        let mut result = result;
        result["schema"] = json!(report::SCHEMA);
        report::json_result(&result)?;
    } else {
        report::to_stdout(&text)?;
    }
    match finding {
        Finding::Agrees { .. } => Ok(()),
        Finding::Rewrite { .. } | Finding::Required { .. } => Err(Failure::Told(exit::MISMATCH)),
    }
}
