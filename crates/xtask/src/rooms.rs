//! Which folders and files at the top of a crate use one another in a circle. One that is part of a circle cannot be
//! read, tested or moved alone. A crate that is not in [`CIRCLES`] has none, and a new one fails here.
//!
//! Uses are read from the sources: paths that begin with `crate` or `super`, also through what `lib.rs` shows under a
//! name of its own. Unit tests are left out, for they may use anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

use crate::Outcome;
use crate::metadata::{metadata, packages, text};

/// The largest circle that a crate still has, in modules; any other crate has none. A number here only falls.
const CIRCLES: &[(&str, usize)] = &[
    ("engine", 2),
    ("postgres", 2),
    ("server", 2),
    ("sql", 2),
    ("sqlcached-bench", 3),
    ("sqlcached-client", 3),
];

/// A module and those that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Holds every crate against [`CIRCLES`].
pub(crate) fn check() -> Outcome {
    let metadata = match metadata(false) {
        Ok(metadata) => metadata,
        Err(why) => return Outcome::broken(why),
    };
    let mut failures = Vec::new();
    let mut passed = 0;
    for package in packages(&metadata) {
        match judge(text(package, "name"), Path::new(text(package, "manifest_path"))) {
            Ok(()) => passed += 1,
            Err(why) => failures.push(why),
        }
    }
    Outcome::new(passed, failures)
}

fn judge(name: &str, manifest: &Path) -> Result<(), String> {
    let allowed =
        CIRCLES.iter().find(|(crate_name, _)| *crate_name == name).map_or(1, |(_, modules)| *modules);
    let circle = largest_circle(&uses_in(&manifest.with_file_name("src"))?);
    if circle.len() == allowed || circle.len() < 2 && allowed == 1 {
        return Ok(());
    }
    let what = if circle.len() > allowed { "let one of them stop using another" } else { "lower its number" };
    let modules = circle.into_iter().collect::<Vec<_>>();
    Err(format!(
        "{name}: {} modules use one another in a circle, {allowed} are allowed by crates/xtask/src/rooms.rs; {what}: {}",
        modules.len(),
        modules.join(", ")
    ))
}

/// What each top-level module of a crate uses of the others.
fn uses_in(src: &Path) -> Result<Uses, String> {
    let Some(root) = ["lib.rs", "main.rs"].map(|name| src.join(name)).into_iter().find(|path| path.exists())
    else {
        return Ok(Uses::new());
    };
    let shown = shown_by(&parsed(&root)?);
    let mut uses = Uses::new();
    for path in sources(src)? {
        let within = path.strip_prefix(src).map_err(|error| error.to_string())?;
        let modules = modules_of(within);
        let Some(top) = modules.first() else { continue };
        let mut reader = PathReader { depth: modules.len(), shown: &shown, used: BTreeSet::new() };
        reader.visit_file(&parsed(&path)?);
        uses.entry(top.clone()).or_default().extend(reader.used);
    }
    let known: BTreeSet<String> = uses.keys().cloned().collect();
    for (module, used) in &mut uses {
        used.retain(|other| other != module && known.contains(other));
    }
    Ok(uses)
}

fn parsed(path: &Path) -> Result<syn::File, String> {
    let source = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    syn::parse_file(&source).map_err(|error| format!("{}: {error}", path.display()))
}

/// The Rust files below a folder, those of tests and of the crate's root apart.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if matches!(name, "lib" | "main" | "tests" | "testing") {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The modules that a file is: `sql_session/run.rs` is `sql_session::run`.
fn modules_of(file: &Path) -> Vec<String> {
    let stem = file.with_extension("");
    let names = stem.iter().filter_map(|name| name.to_str()).filter(|name| *name != "mod");
    names.map(str::to_owned).collect()
}

/// The names that the crate's root shows, and the module that each comes from.
fn shown_by(root: &syn::File) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    for item in &root.items {
        if let Item::Use(item) = item
            && let UseTree::Path(path) = &item.tree
        {
            let module = path.ident.to_string();
            names_in(&path.tree, &mut |name| {
                shown.insert(name, module.clone());
            });
        }
    }
    shown
}

/// The names that a `use` brings in.
fn names_in(tree: &UseTree, found: &mut dyn FnMut(String)) {
    match tree {
        UseTree::Path(path) => names_in(&path.tree, found),
        UseTree::Name(name) => found(name.ident.to_string()),
        UseTree::Rename(renamed) => found(renamed.rename.to_string()),
        UseTree::Group(group) => group.items.iter().for_each(|item| names_in(item, found)),
        UseTree::Glob(_) => {}
    }
}

/// Notes the top-level modules that the paths of a file lead to.
struct PathReader<'a> {
    /// How deep the file's module lies: 1 for a top-level one.
    depth: usize,
    shown: &'a BTreeMap<String, String>,
    used: BTreeSet<String>,
}

impl PathReader<'_> {
    /// Takes the words of a path from its beginning.
    fn path(&mut self, words: &[String]) {
        let above = words.iter().take_while(|word| *word == "super").count();
        let rest = match words.first().map(String::as_str) {
            Some("crate") => &words[1..],
            _ if above > 0 && above == self.depth => &words[above..],
            _ => return,
        };
        if let Some(name) = rest.first() {
            self.used.insert(self.shown.get(name).unwrap_or(name).clone());
        }
    }

    fn tree(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        let mut with = |reader: &mut Self, name: String, next: Option<&UseTree>| {
            before.push(name);
            match next {
                Some(next) => reader.tree(before, next),
                None => reader.path(before),
            }
            before.pop();
        };
        match tree {
            UseTree::Path(path) => with(self, path.ident.to_string(), Some(&path.tree)),
            UseTree::Name(name) => with(self, name.ident.to_string(), None),
            UseTree::Rename(renamed) => with(self, renamed.ident.to_string(), None),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(before, item)),
            UseTree::Glob(_) => self.path(before),
        }
    }
}

impl<'ast> Visit<'ast> for PathReader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_of_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.depth += 1;
        visit::visit_item_mod(self, module);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&mut Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.path(&words);
        visit::visit_path(self, path);
    }
}

fn is_of_tests(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// The most modules that all lead to one another.
fn largest_circle(uses: &Uses) -> BTreeSet<String> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        uses.keys().map(|module| (module, reached_from(uses, module))).collect();
    let circles = reached.iter().map(|(module, others)| {
        others
            .iter()
            .filter(|other| reached.get(**other).is_some_and(|back| back.contains(*module)))
            .collect()
    });
    let largest: Option<Vec<&&String>> = circles.max_by_key(Vec::len);
    largest.unwrap_or_default().into_iter().map(|module| (*module).clone()).collect()
}

/// The modules that a module leads to, over any number of others.
fn reached_from<'u>(uses: &'u Uses, module: &String) -> BTreeSet<&'u String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&String> = uses.get(module).into_iter().flatten().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(uses.get(next).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(lines: &[(&str, &[&str])]) -> Uses {
        lines.iter().map(|(from, to)| ((*from).into(), to.iter().map(|to| (*to).into()).collect())).collect()
    }

    #[test]
    fn the_largest_circle_is_found() {
        let found = largest_circle(&uses(&[
            ("a", &["b", "e"]),
            ("b", &["c"]),
            ("c", &["a"]),
            ("d", &["a", "e"]),
            ("e", &["f"]),
            ("f", &["e"]),
        ]));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(largest_circle(&uses(&[("a", &["b"]), ("b", &[])])).is_empty());
    }

    #[test]
    fn uses_are_read_from_every_kind_of_path() {
        let shown = BTreeMap::from([("Table".to_owned(), "table".to_owned())]);
        let mut reader = PathReader { depth: 2, shown: &shown, used: BTreeSet::new() };
        let source = "use crate::{a::X, Table, b::{self, c}};\n\
            use super::near; use super::super::far;\n\
            fn f(x: crate::d::Y) { super::super::g::h(crate::i::J) }\n\
            #[cfg(test)] mod tests { use crate::no; }";
        reader.visit_file(&syn::parse_file(source).unwrap());
        let used: Vec<String> = reader.used.into_iter().collect();
        assert_eq!(used, ["a", "b", "d", "far", "g", "i", "table"]);
    }
}
