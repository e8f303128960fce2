//! Turns the `.proto` files of this folder into Rust, with a pure-Rust compiler: no `protoc` needed.

fn main() {
    println!("cargo:rerun-if-changed=proto");
    let mut files: Vec<_> = std::fs::read_dir("proto")
        .expect("the proto folder stands beside Cargo.toml")
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "proto"))
        .collect();
    files.sort();
    let descriptors = protox::compile(&files, ["proto"]).expect("the .proto files are valid");
    prost_build::Config::new()
        .btree_map(["."])
        .compile_fds(descriptors)
        .expect("the Rust code for the .proto files can be written");
}
