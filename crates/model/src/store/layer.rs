//! Layers around every operation of a store: a deadline, or faults in a test.
//!
//! [`store_trait`] declares each store trait and implements it for [`Layered`] from the same signatures, so a new operation is
//! inside every layer without being listed again.

use std::time::Duration;

use async_trait::async_trait;

use super::{Store, StoreError, StoreProblem};

/// Work that is done around each operation of a store.
pub trait StoreLayer: Send + Sync + 'static {
    /// Store inside this layer.
    fn store(&self) -> &dyn Store;

    /// Runs `work`, which is the operation with this name on the store inside.
    fn wrap<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + 'a;
}

/// Store with a layer around every operation.
#[derive(Clone, Debug)]
pub struct Layered<L>(pub L);

// === impl Layered ===

#[async_trait]
impl<L: StoreLayer> Store for Layered<L> {
    fn generation(&self) -> u64 {
        self.0.store().generation()
    }

    async fn problem(&self) -> Option<StoreProblem> {
        self.0.store().problem().await
    }

    fn lease(&self) -> Duration {
        self.0.store().lease()
    }

    fn detects_process_exit(&self) -> bool {
        self.0.store().detects_process_exit()
    }

    async fn touch(&self) -> Result<u64, StoreError> {
        self.0.wrap("touch", self.0.store().touch()).await
    }
}

/// Declares the store trait of one aggregate and implements it for [`Layered`].
///
/// `$end` is a semicolon, or the default body of a method.
macro_rules! store_trait {
    ($(#[$about:meta])* pub trait $name:ident { $(
        $(#[$doc:meta])*
        async fn $method:ident(&$self:ident $(, $argument:ident: $type:ty)* $(,)?) -> Result<$answer:ty, StoreError> $end:tt
    )* }) => {
        $(#[$about])*
        #[::async_trait::async_trait]
        pub trait $name: Send + Sync {
            $(
                $(#[$doc])*
                async fn $method(&$self $(, $argument: $type)*) -> Result<$answer, StoreError> $end
            )*
        }

        #[::async_trait::async_trait]
        impl<L: $crate::store::StoreLayer> $name for $crate::store::Layered<L> {
            $(
                async fn $method(&$self $(, $argument: $type)*) -> Result<$answer, StoreError> {
                    $self.0.wrap(stringify!($method), $self.0.store().$method($($argument),*)).await
                }
            )*
        }
    };
}

pub(super) use store_trait;
