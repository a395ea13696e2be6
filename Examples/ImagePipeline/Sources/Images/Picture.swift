// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// The formats of picture files that this knows.
public enum PictureFormat: Sendable {
    /// JPEG.
    case jpeg
    /// PNG.
    case png

    /// What a file's first bytes say; nil: something else.
    public init?(of file: Data) {
        if file.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if file.starts(with: [0x89, 0x50, 0x4E, 0x47]) {
            self = .png
        } else {
            return nil
        }
    }
}

/// Why there is no picture.
public enum PictureError: Error {
    /// The file is no JPEG and no PNG, or damaged.
    case unreadable
    /// There is no memory to make the file.
    case unwritable
    /// The server has answered with this status.
    case refused(status: Int)
}

/// A picture: its file, which is what is stored, and its pixels, which are what memory is for.
public struct Picture: DiscardableValue {
    /// JPEG or PNG.
    public let file: Data
    /// In pixels.
    public let width: Int
    /// In pixels.
    public let height: Int
    /// Row by row, as libgd has them: 7 bits of transparency, and 8 each of red, green and blue.
    ///
    /// nil only where memory was short; what a cache returns has them.
    public private(set) var pixels: [UInt32]?

    /// What is in a file.
    public init(file: Data) throws(PictureError) {
        self.init(try Canvas(decoding: file), file: file)
    }

    /// What is in a file, with its longer side that long at most, as a file of the same format.
    public init(downsampling file: Data, to side: Int) throws(PictureError) {
        guard let format = PictureFormat(of: file) else { throw .unreadable }
        let whole = try Canvas(decoding: file)
        let small = try whole.fitted(to: side)
        // A file that is small enough stays as it is: the cache then has its bytes once.
        self.init(small, file: try small === whole ? file : small.encoded(as: format))
    }

    private init(_ canvas: Canvas, file: Data) {
        self.file = file
        width = canvas.width
        height = canvas.height
        pixels = canvas.pixels
    }

    /// What it takes in memory, in bytes.
    public var cost: Int { file.count + 4 * (pixels?.count ?? 0) }

    /// The file alone; nil if it is that already.
    public func discarded() -> (value: Picture, cost: Int)? {
        guard pixels != nil else { return nil }
        var picture = self
        picture.pixels = nil
        return (picture, picture.cost)
    }

    /// With the pixels of its file.
    public func restored() throws -> Picture { try Picture(file: file) }
}

/// Stores pictures as their files, and has memory hold their pixels at what they cost there.
public struct PictureCodec: CacheCodec {
    /// There is one way to do that.
    public init() {}

    /// The file.
    public func encode(_ picture: Picture) -> Data { picture.file }

    /// The picture in a file.
    public func decode(_ file: Data) throws -> Picture { try Picture(file: file) }

    /// Bytes of the file and of the pixels.
    public func cost(of picture: Picture, encodedSize: Int) -> Int { picture.cost }
}
