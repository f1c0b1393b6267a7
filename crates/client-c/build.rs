//! Gives the shared library the name by which programs that were linked with it find it: the name without a version,
//! and the number that rises when old programs could not go on using it (`ABI` in `crates/xtask/src/install.rs`).

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsqlcached.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
