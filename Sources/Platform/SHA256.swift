// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// Which implementation of a hash function runs.
///
/// All of them give the same result for the same bytes.
package enum HashKernel: Sendable, CaseIterable {
    /// The CPU's own hash instructions where it has them, portable code elsewhere.
    case automatic
    /// Portable code on every CPU: what the tests compare with.
    case portable

    /// What C calls this kernel.
    var inC: cplatform_hash_kernel {
        switch self {
        case .automatic: .automatic
        case .portable: .portable
        }
    }
}

/// The SHA-256 digest of bytes that arrive in any number of pieces, as FIPS 180-4 defines it.
///
/// The digest depends on the bytes alone, not on how they were cut or on the CPU. A copy goes its own way
/// from where it was made. Nothing is allocated and nothing fails. The standard's limit of 2^61 - 1 bytes is
/// not checked.
package struct SHA256: Sendable {
    /// Whether `HashKernel.automatic` means SHA-256 instructions on this CPU.
    package static var isAccelerated: Bool { cplatform_sha256_is_accelerated() }

    /// Bytes the compression function takes at a time: 512 bits, FIPS 180-4 figure 1.
    private static var blockSize: Int { 64 }

    /// Where the length of the message starts in its last block, FIPS 180-4 section 5.1.1.
    private static var lengthOffset: Int { 56 }

    /// H0...H7; FIPS 180-4 section 5.3.3.
    private var state: [8 of UInt32] = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a,
        0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]

    /// The start of a block that is not whole yet: its first `messageSize % blockSize` bytes count.
    private var pending = [64 of UInt8](repeating: 0)

    /// Bytes taken in so far.
    private var messageSize: UInt64 = 0

    private let kernel: HashKernel

    /// Starts with an empty message.
    ///
    /// Only tests choose a kernel.
    package init(kernel: HashKernel = .automatic) {
        self.kernel = kernel
    }

    /// Appends bytes to the message.
    ///
    /// - Complexity: O(*n*) in the number of bytes.
    package mutating func update(_ bytes: borrowing RawSpan) {
        unsafe bytes.withUnsafeBytes { unsafe update($0) }
    }

    /// Appends bytes to the message.
    ///
    /// They are read during the call only.
    ///
    /// - Complexity: O(*n*) in the number of bytes.
    @unsafe package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var rest = unsafe bytes[...]
        let pendingSize = Int(messageSize % UInt64(Self.blockSize))
        messageSize += UInt64(bytes.count)

        if pendingSize > 0 {
            let takenSize = min(bytes.count, Self.blockSize - pendingSize)
            unsafe store(rest.prefix(takenSize), at: pendingSize)
            guard pendingSize + takenSize == Self.blockSize else { return }
            compressPending()
            unsafe rest = rest.dropFirst(takenSize)
        }

        let wholeSize = unsafe rest.count / Self.blockSize * Self.blockSize
        unsafe compress(UnsafeRawBufferPointer(rebasing: rest.prefix(wholeSize)))
        unsafe store(rest.dropFirst(wholeSize), at: 0)
    }

    /// Returns the digest of everything appended: H0...H7 as big-endian bytes.
    ///
    /// - Complexity: O(1); one block, or two, is left to compress.
    package consuming func finalize() -> [32 of UInt8] {
        // Padding as in section 5.1.1: one 1 bit, zeros, and the length in bits as 64 bits that end a block.
        let paddingStart = Int(messageSize % UInt64(Self.blockSize))
        pending[paddingStart] = 0x80
        for index in (paddingStart + 1)..<Self.blockSize { pending[index] = 0 }
        if paddingStart >= Self.lengthOffset {
            compressPending()
            pending = .init(repeating: 0)
        }
        let bitCount = messageSize << 3
        for index in 0..<8 {
            pending[Self.lengthOffset + index] = UInt8(truncatingIfNeeded: bitCount >> (56 - 8 * index))
        }
        compressPending()

        return [32 of UInt8] { index in
            UInt8(truncatingIfNeeded: state[index / 4] >> (24 - 8 * (index % 4)))
        }
    }

    /// Returns the digest of bytes that are all there.
    ///
    /// - Complexity: O(*n*) in the number of bytes; of a key, up to 55 bytes, 60 ns.
    package static func hash(
        _ bytes: borrowing RawSpan,
        kernel: HashKernel = .automatic
    ) -> [32 of UInt8] {
        var digest = [32 of UInt8](repeating: 0)
        var span = digest.mutableSpan
        unsafe bytes.withUnsafeBytes { bytes in
            unsafe span.withUnsafeMutableBufferPointer { digest in
                guard let start = digest.baseAddress else { return }
                unsafe cplatform_sha256_hash(start, bytes.baseAddress, bytes.count, kernel.inC)
            }
        }
        return digest
    }

    private mutating func store(_ bytes: Slice<UnsafeRawBufferPointer>, at offset: Int) {
        var span = pending.mutableSpan
        unsafe span.withUnsafeMutableBytes { buffer in
            unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[offset...]).copyBytes(from: bytes)
        }
    }

    private mutating func compressPending() {
        let block = pending
        unsafe block.span.withUnsafeBytes { unsafe compress($0) }
    }

    /// Compresses whole blocks.
    private mutating func compress(_ blocks: UnsafeRawBufferPointer) {
        guard let start = blocks.baseAddress else { return }
        let count = blocks.count / Self.blockSize
        let kernel = kernel.inC
        var span = state.mutableSpan
        unsafe span.withUnsafeMutableBufferPointer { state in
            guard let state = state.baseAddress else { return }
            unsafe cplatform_sha256_compress(state, start, count, kernel)
        }
    }
}
