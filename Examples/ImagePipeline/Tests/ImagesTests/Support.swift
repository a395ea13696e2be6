// SPDX-License-Identifier: Apache-2.0

import CGD
import Foundation
import Synchronization

@testable import Images

/// A fresh directory, removed with everything in it when this goes.
final class Place: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "/image-pipeline-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// The steps that pipelines have taken, in order, as "load a.jpg".
final class Steps: Sendable {
    private let steps = Mutex<[String]>([])

    var all: [String] { steps.withLock { $0 } }

    func note(_ step: ImagePipeline.Step, _ address: String) {
        steps.withLock { $0.append("\(step.rawValue) \(address)") }
    }
}

extension Canvas {
    /// Red grows to the right and green downwards; blue is that of the number, and so is the transparency.
    static func painted(_ width: Int, _ height: Int, number: Int) throws -> Canvas {
        let canvas = try Canvas(width: width, height: height)
        for y in 0..<height {
            for x in 0..<width {
                let (red, green, blue) = (255 * x / width, 255 * y / height, 40 * number % 256)
                let colour = (7 * number % 128) << 24 | red << 16 | green << 8 | blue
                gdImageSetPixel(canvas.image, Int32(x), Int32(y), Int32(colour))
            }
        }
        return canvas
    }
}

extension Picture {
    /// Transparency, red, green and blue in the middle.
    var middle: [Int] {
        let pixel = pixels?[height / 2 * width + width / 2] ?? 0
        return [UInt32(24), 16, 8, 0].map { Int(pixel >> $0 & 0xFF) }
    }
}
