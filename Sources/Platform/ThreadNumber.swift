// SPDX-License-Identifier: Apache-2.0

public import CPlatform

/// A small number of the calling thread's own, for choosing one of several counters that are summed up.
///
/// Threads are numbered as they first ask, from another number in each process, as they share counters with
/// those; numbers are not used again. A thread-local variable, no call.
@inlinable package var threadNumber: Int { Int(cplatform_thread_number()) }
