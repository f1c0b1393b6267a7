//! The shop with Symfony's components in `examples/symfony`.

use std::process::Command;

use super::shop::{Premises, Shop, in_a_browser};
use super::{client, root};

fn open() -> Shop {
    let environment = vec![("AUTOLOAD", client("php/tests/shop.php"))];
    let premises = Premises { folder: root().join("examples/symfony"), environment };
    let mut fill = Command::new("php");
    fill.arg("fill.php");
    Shop::open(premises, Some(fill), |port| {
        let mut php = Command::new("php");
        php.args(["-S", &format!("127.0.0.1:{port}"), "-t", "public", "public/index.php"]);
        php
    })
}

#[test]
fn symfony_tutorial() {
    open().teach(4);
}

#[test]
fn the_symfony_shop_in_a_browser() {
    in_a_browser(open);
}
