// SPDX-License-Identifier: Apache-2.0

import CGD
import Foundation

/// A picture as libgd has it, freed when this goes.
///
/// For one thread at a time: libgd keeps nothing outside of it.
final class Canvas {
    let image: gdImagePtr

    var width: Int { Int(image.pointee.sx) }
    var height: Int { Int(image.pointee.sy) }

    /// Takes what libgd returns; nil where it has failed.
    private init(taking image: gdImagePtr?) throws(PictureError) {
        guard let image else { throw .unreadable }
        // Each pixel has a colour of its own, and its transparency, whatever the file had.
        guard image.pointee.trueColor != 0 || gdImagePaletteToTrueColor(image) != 0 else {
            gdImageDestroy(image)
            throw .unreadable
        }
        gdImageAlphaBlending(image, 0)
        gdImageSaveAlpha(image, 1)
        self.image = image
    }

    /// A black one.
    convenience init(width: Int, height: Int) throws(PictureError) {
        try self.init(taking: gdImageCreateTrueColor(Int32(clamping: width), Int32(clamping: height)))
    }

    /// What is in a file.
    convenience init(decoding file: Data) throws(PictureError) {
        guard let format = PictureFormat(of: file), let count = Int32(exactly: file.count) else {
            throw .unreadable
        }
        let image = file.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) -> gdImagePtr? in
            // libgd only reads it, though its header does not say so.
            let start = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
            switch format {
            case .jpeg: return gdImageCreateFromJpegPtr(count, start)
            case .png: return gdImageCreateFromPngPtr(count, start)
            }
        }
        try self.init(taking: image)
    }

    deinit {
        gdImageDestroy(image)
    }

    /// The same picture with its longer side that long, each pixel the mean of those in its place; this one
    /// if it is no longer.
    func fitted(to side: Int) throws(PictureError) -> Canvas {
        let longest = max(width, height)
        guard side < longest else { return self }
        let small = try Canvas(
            width: max(1, width * side / longest),
            height: max(1, height * side / longest)
        )
        let (to, from) = (small.image, image)
        let (across, down) = (to.pointee.sx, to.pointee.sy)
        gdImageCopyResampled(to, from, 0, 0, 0, 0, across, down, from.pointee.sx, from.pointee.sy)
        return small
    }

    /// A file with it; as JPEG in good quality and without transparency, as PNG exactly.
    func encoded(as format: PictureFormat) throws(PictureError) -> Data {
        var count: Int32 = 0
        let bytes: UnsafeMutableRawPointer? =
            switch format {
            case .jpeg: gdImageJpegPtr(image, &count, 90)
            case .png: gdImagePngPtr(image, &count)
            }
        guard let bytes else { throw .unwritable }
        defer { gdFree(bytes) }
        return Data(bytes: bytes, count: Int(count))
    }

    /// The pixels, row by row: 7 bits of transparency, of which 0 is none, and 8 each of red, green and blue.
    var pixels: [UInt32] {
        var pixels: [UInt32] = []
        pixels.reserveCapacity(width * height)
        for y in 0..<height {
            guard let row = image.pointee.tpixels[y] else { continue }
            for x in 0..<width { pixels.append(UInt32(bitPattern: row[x])) }
        }
        return pixels
    }
}
