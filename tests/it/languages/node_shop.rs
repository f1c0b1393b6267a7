//! The shop with Express in `examples/node`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use super::shop::{Premises, Shop, in_a_browser};
use super::{built, client, fetched, root, succeed};

/// A copy of the shop beside the packages that npm would install.
fn installed(name: &str) -> PathBuf {
    let place = built(name);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    succeed(Command::new("cp").arg("-r").arg(root().join("examples/node")).arg(&place));
    let modules = place.join("node_modules");
    fs::create_dir_all(&modules).unwrap();
    for entry in fs::read_dir(fetched("clients-node-cache/node_modules")).unwrap() {
        let path = entry.unwrap().path().canonicalize().unwrap();
        symlink(&path, modules.join(path.file_name().unwrap())).unwrap();
    }
    succeed(Command::new("cp").arg("-r").arg(client("node-cache")).arg(modules.join("sqlcached")));
    place
}

fn open(name: &str) -> Shop {
    let premises = Premises { folder: installed(name), environment: Vec::new() };
    Shop::open(premises, None, |port| {
        let mut node = Command::new("node");
        node.arg("shop.js").env("PORT", port.to_string());
        node
    })
}

#[test]
fn express_tutorial() {
    open("node-shop-tutorial").teach(3);
}

#[test]
fn the_express_shop_in_a_browser() {
    in_a_browser(|| open("node-shop-browser"));
}
