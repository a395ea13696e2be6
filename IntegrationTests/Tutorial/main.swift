// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// Something slow: what your program computes, renders or downloads.
func report(on city: String) -> Data {
    Thread.sleep(forTimeInterval: 1)
    return Data("The weather in \(city) is fine.".utf8)
}

let cache = try SharedCache(at: "weather-cache")
try cache.directory.updateLimits { $0.maximumSize = .mebibytes(100) }

for city in CommandLine.arguments.dropFirst() {
    let options = PutOptions(expires: .seconds(600), tags: ["weather"])
    let text = cache.value(forKey: "weather/\(city)", options: options) {
        FileHandle.standardError.write(Data("computing \(city)\n".utf8))
        return report(on: city)
    }
    print(String(decoding: text, as: UTF8.self))
}
