// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Nanoseconds by the clock that all adapters use: CLOCK_MONOTONIC.
@inline(__always)
func now() -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Processor time in nanoseconds that this process, all its threads, has used so far.
struct ProcessorTime: Sendable {
    var user: UInt64 = 0
    var system: UInt64 = 0

    static var current: ProcessorTime {
        var usage = rusage()
        unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return ProcessorTime(user: nanoseconds(usage.ru_utime), system: nanoseconds(usage.ru_stime))
    }

    static func - (end: ProcessorTime, begin: ProcessorTime) -> ProcessorTime {
        ProcessorTime(user: end.user - begin.user, system: end.system - begin.system)
    }

    private static func nanoseconds(_ time: timeval) -> UInt64 {
        UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_usec) * 1000
    }
}

/// Says that all is prepared and waits until the driver lets all workers go at once.
func waitForDriver(_ options: Options) {
    guard options.hasHandshake else { return }
    print("READY")
    fflush(nil)
    guard readLine() != nil else { exit(3) }
}
