// SPDX-License-Identifier: Apache-2.0

/// What `diskcache stats` is asked for.
struct StatsOrder {
    /// The forms exclude each other.
    enum Subject: Equatable {
        case everything
        case counts
        case watch(Duration)
        case exposition
        case reset
    }

    let subject: Subject
    let isJSON: Bool

    init(_ arguments: Arguments) throws(Failure) {
        var forms = ["quick", "watch", "prometheus", "reset"].filter(arguments.has)
        isJSON = arguments.has("json")
        // A format of its own.
        if isJSON, forms == ["prometheus"] { forms.append("json") }
        if forms.count > 1 {
            throw .usage("stats: --\(forms[0]) and --\(forms[1]) exclude each other: give one")
        }
        switch forms.first {
        case "quick": subject = .counts
        case "watch": subject = .watch(try arguments.value("watch", as: Self.interval) ?? .seconds(1))
        case "prometheus": subject = .exposition
        case "reset": subject = .reset
        default: subject = .everything
        }
    }

    /// Nothing: a second, as watch(1) and vmstat(8) have it.
    private static func interval(_ text: String) throws(Failure) -> Duration {
        if text.isEmpty { return .seconds(1) }
        let span = try Quantity.duration(text)
        // Faster than anybody reads, and a load of its own.
        if span < .milliseconds(100) { throw .usage("\(text) is too often: the least is 100ms") }
        return span
    }
}
