// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The processors that this process may run on.
package enum Processors {
    /// How many there are now, at least 1.
    ///
    /// C: `sysconf(_SC_NPROCESSORS_ONLN)`.
    package static var count: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}
