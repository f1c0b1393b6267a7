//! The site: the documents as pages with search, by Sphinx (`docs/site/conf.py`).

use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::metadata::root;
use crate::tools;

/// Makes it in `target/site`.
pub(crate) fn build() -> Result<(), String> {
    tools::install_site()?;
    let made = root().join("target/site");
    make(&made)?;
    println!("{}: its first page is index.html. To search it, serve it:", made.display());
    println!("python3 -m http.server --bind 127.0.0.1 --directory target/site 8000");
    Ok(())
}

/// As a step of `make test`: it is made, and looked at in a browser.
pub(crate) fn check() -> Outcome {
    let made = root().join("target/site");
    match make(&made).and_then(|()| look_at(&made)) {
        Ok(checks) => Outcome::new(checks, Vec::new()),
        Err(why) => Outcome::broken(why),
    }
}

fn make(to: &Path) -> Result<(), String> {
    let mut sphinx = Command::new(root().join("target/drivers/site/bin/sphinx-build"));
    // Warnings are errors: a link that leads nowhere is a warning.
    sphinx.args(["--quiet", "--fail-on-warning", "--keep-going", "--conf-dir", "docs/site"]);
    sphinx.arg("--doctree-dir").arg(root().join("target/site-doctrees"));
    output(sphinx.arg(".").arg(to)).map(drop)
}

/// How many checks held.
fn look_at(site: &Path) -> Result<usize, String> {
    let mut node = Command::new("node");
    node.arg("tests/drivers/site/site.js").arg(site);
    let said = output(node.env("NODE_PATH", root().join("target/drivers/console/node_modules")))?;
    let count = said.split(' ').next().and_then(|count| count.parse().ok());
    count.ok_or_else(|| format!("tests/drivers/site/site.js says: {said}"))
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.current_dir(root()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(format!("{command:?}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr)))
}
