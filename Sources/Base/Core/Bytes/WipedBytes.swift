internal import Glibc

/// Secret bytes, which are overwritten when nothing refers to them any more: freed memory keeps what was in it, for a core dump or
/// for those who read the process's memory.
///
/// Copies of them, such as ``text``, are not overwritten.
@safe
public final class WipedBytes: @unchecked Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    // Written by `init` and overwritten by `deinit`, and by nothing in between.
    private let memory: UnsafeMutableRawBufferPointer

    /// Copies the bytes.
    public init(_ bytes: some Collection<UInt8>) {
        unsafe memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        unsafe memory.copyBytes(from: bytes)
    }

    /// Copies the bytes, and overwrites the array, unless others have it, too.
    public convenience init(wiping bytes: inout [UInt8]) {
        self.init(bytes)
        bytes.wipe()
    }

    deinit {
        if let start = unsafe memory.baseAddress { unsafe explicit_bzero(start, memory.count) }
        unsafe memory.deallocate()
    }

    /// How many there are.
    public var count: Int { unsafe memory.count }

    /// Their text, if they are UTF-8.
    public var text: String { unsafe String(decoding: memory, as: UTF8.self) }

    /// Has `body` read them.
    public func read<Result>(_ body: (RawSpan) throws -> Result) rethrows -> Result { try body(unsafe memory.bytes) }

    /// Compares the bytes with others, which are not copied, in a time that depends on nothing but the lengths.
    public func isEqual(to others: some Collection<UInt8>) -> Bool {
        guard others.count == count else { return false }
        var difference: UInt8 = 0
        for (index, byte) in others.enumerated() { unsafe difference |= memory[index] ^ byte }
        return difference == 0
    }

    /// Compares the bytes.
    public static func == (one: WipedBytes, other: WipedBytes) -> Bool { unsafe one.memory.elementsEqual(other.memory) }

    /// A mask.
    public var description: String { "(secret)" }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension [UInt8] {
    /// Overwrites what is there with zeros. If others have the array, too, that is a copy, and theirs stays.
    public mutating func wipe() {
        unsafe withUnsafeMutableBytes { bytes in
            if let start = bytes.baseAddress { unsafe explicit_bzero(start, bytes.count) }
        }
    }
}
