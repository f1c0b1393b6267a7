//! The shop with Rails in `examples/rails`.

use std::process::Command;

use super::shop::{Premises, Shop, in_a_browser};
use super::{client, root};

fn open() -> Shop {
    let environment = vec![("RUBYLIB", client("ruby/lib"))];
    let premises = Premises { folder: root().join("examples/rails"), environment };
    let mut fill = Command::new("ruby");
    fill.arg("fill.rb");
    Shop::open(premises, Some(fill), |port| {
        let mut puma = Command::new("puma");
        puma.args(["-q", "-b", &format!("tcp://127.0.0.1:{port}"), "config.ru"]);
        puma
    })
}

#[test]
fn rails_tutorial() {
    open().teach(4);
}

#[test]
fn the_rails_shop_in_a_browser() {
    in_a_browser(open);
}
