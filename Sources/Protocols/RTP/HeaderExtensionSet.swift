public import Core

/// Header extensions of one packet that is to be sent (RFC 8285). Up to 62 bytes of values with what each needs besides;
/// written in the one-byte form if all fit it, else in the two-byte form.
public struct HeaderExtensionSet: Sendable {
    /// Identifier, length and value of each element, one after the other.
    private var bytes = InlineArray<64, UInt8>(repeating: 0)
    private var count = 0
    private var elements = 0
    private var needsTwoBytes = false

    /// Makes a set without elements.
    @_noAllocation @_noLocks
    public init() {}

    /// Whether there is nothing to write.
    public var isEmpty: Bool { @_noAllocation @_noLocks get { elements == 0 } }

    /// Adds an element of one byte.
    ///
    /// - Returns: Whether it fitted and the identifier is one (1…255 but 15).
    @_noAllocation @_noLocks @discardableResult
    public mutating func append(_ identifier: UInt8, _ value: UInt8) -> Bool {
        guard begin(identifier, size: 1) else { return false }
        put(value)
        return true
    }

    /// Adds an element of two bytes.
    @_noAllocation @_noLocks @discardableResult
    public mutating func append(_ identifier: UInt8, _ value: UInt16) -> Bool {
        guard begin(identifier, size: 2) else { return false }
        put(UInt8(truncatingIfNeeded: value >> 8))
        put(UInt8(truncatingIfNeeded: value))
        return true
    }

    /// Adds an element of three bytes, the low ones of `value`.
    @_noAllocation @_noLocks @discardableResult
    public mutating func appendUInt24(_ identifier: UInt8, _ value: UInt32) -> Bool {
        guard begin(identifier, size: 3) else { return false }
        put(UInt8(truncatingIfNeeded: value >> 16))
        put(UInt8(truncatingIfNeeded: value >> 8))
        put(UInt8(truncatingIfNeeded: value))
        return true
    }

    /// Adds a text, such as the section's name. An empty one needs the two-byte form.
    @_noAllocation @_noLocks @discardableResult
    public mutating func append(_ identifier: UInt8, _ text: ShortText) -> Bool {
        guard begin(identifier, size: text.count) else { return false }
        var index = 0
        while index < text.count {
            put(text[index])
            index += 1
        }
        return true
    }

    /// Bytes on the wire with the header of four and padding; 0 if there are no elements.
    public var wireSize: Int {
        @_noAllocation @_noLocks get { elements == 0 ? 0 : 4 + (elementsSize + 3) / 4 * 4 }
    }

    private var elementsSize: Int { @_noAllocation @_noLocks get { needsTwoBytes ? count : count - elements } }

    /// Appends the extension; nothing if there are no elements.
    @_noAllocation @_noLocks
    public func write(into writer: inout ByteWriter) {
        guard elements > 0 else { return }
        let padded = (elementsSize + 3) / 4 * 4
        writer.write((needsTwoBytes ? 0x1000 : 0xBEDE) as UInt16)
        writer.write(UInt16(truncatingIfNeeded: padded / 4))
        var offset = 0
        while offset + 1 < count {
            let size = Int(bytes[offset + 1])
            if needsTwoBytes {
                writer.write(bytes[offset])
                writer.write(bytes[offset + 1])
            } else {
                writer.write(bytes[offset] << 4 | UInt8(truncatingIfNeeded: size - 1))
            }
            var index = 0
            while index < size {
                writer.write(bytes[offset + 2 + index])
                index += 1
            }
            offset += 2 + size
        }
        var padding = padded - elementsSize
        while padding > 0 {
            writer.write(0 as UInt8)
            padding -= 1
        }
    }

    @_noAllocation @_noLocks
    private mutating func begin(_ identifier: UInt8, size: Int) -> Bool {
        guard identifier != 0, identifier != 15, count + 2 + size <= 64 else { return false }
        if identifier > 14 || size == 0 || size > 16 { needsTwoBytes = true }
        put(identifier)
        put(UInt8(truncatingIfNeeded: size))
        elements += 1
        return true
    }

    @_noAllocation @_noLocks
    private mutating func put(_ byte: UInt8) {
        bytes[count] = byte
        count += 1
    }
}

extension RTPHeader {
    /// Appends the fixed header and the extensions, if there are any.
    @_noAllocation @_noLocks
    public func write(_ extensions: HeaderExtensionSet, into writer: inout ByteWriter) {
        writer.write(extensions.isEmpty ? 0x80 : 0x90 as UInt8)
        writer.write((marker ? 0x80 : 0) | (payloadType & 0x7F))
        writer.write(sequenceNumber)
        writer.write(timestamp)
        writer.write(ssrc)
        extensions.write(into: &writer)
    }
}

extension HeaderExtension {
    /// The element with an identifier; the first, if there are several.
    ///
    /// - Parameter packet: The same bytes that the header was read from.
    @_noAllocation @_noLocks
    public func element(_ identifier: UInt8, in packet: borrowing RawSpan) -> Element? {
        var cursor = Cursor(self)
        while let element = cursor.next(in: packet) {
            if element.identifier == identifier { return element }
        }
        return nil
    }
}

/// How loud a packet's sound is (RFC 6464).
public struct AudioLevel: Equatable, Hashable, Sendable {
    /// Decibels below overload: 0 is a square wave of full scale, 127 silence.
    public var attenuation: UInt8
    /// The sender takes it for a voice.
    public var isVoice: Bool

    /// Makes a level; above 127 counts as 127.
    @_noAllocation @_noLocks
    public init(attenuation: UInt8, isVoice: Bool) {
        self.attenuation = min(127, attenuation)
        self.isVoice = isVoice
    }

    /// Takes the level from the mean of squared samples of 16 bits.
    @_noAllocation @_noLocks
    public init(meanSquare: Double, isVoice: Bool) {
        let ratio = meanSquare / (32_767 * 32_767)
        // Half a decibel below overload, then down in steps of one: rounds to the nearest.
        var limit = 0.8912509381337456
        var attenuation: UInt8 = 0
        while attenuation < 127, ratio < limit {
            limit *= 0.7943282347242815
            attenuation += 1
        }
        self.attenuation = attenuation
        self.isVoice = isVoice
    }

    /// Reads the element of one byte.
    @_noAllocation @_noLocks
    public init(byte: UInt8) {
        attenuation = byte & 0x7F
        isVoice = byte & 0x80 != 0
    }

    /// The element's byte.
    public var byte: UInt8 { @_noAllocation @_noLocks get { (isVoice ? 0x80 : 0) | attenuation } }

    /// The audio level in a packet, if it has one under `identifier`.
    @_noAllocation @_noLocks
    public init?(_ identifier: UInt8, of header: RTPHeader, in packet: borrowing RawSpan) {
        guard let element = header.headerExtension?.element(identifier, in: packet), !element.data.isEmpty,
            let byte = packet.uint8(at: element.data.lowerBound)
        else { return nil }
        self.init(byte: byte)
    }
}

extension RTPHeader {
    /// The transport-wide sequence number, if the packet has one under `identifier`.
    @_noAllocation @_noLocks
    public func transportSequenceNumber(_ identifier: UInt8, in packet: RawSpan) -> UInt16? {
        guard let element = headerExtension?.element(identifier, in: packet), element.data.count >= 2 else {
            return nil
        }
        return packet.uint16(at: element.data.lowerBound)
    }
}
