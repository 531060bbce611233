//! The messages and methods of both packages, as `tools/grpc-gen` has written them down.

#[rustfmt::skip]
pub(crate) mod v03;
#[rustfmt::skip]
pub(crate) mod v10;
