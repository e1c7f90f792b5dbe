public import Core

/// A key of the telephone (RFC 4733 §3.2), or its hook (RFC 2833 §3.10, given up by RFC 4733 appendix A).
public struct TelephoneEvent: Equatable, Hashable, Sendable, CustomStringConvertible {
    /// 0…9 the digits, 10 `*`, 11 `#`, 12…15 `A`…`D`, 16 the flash of the hook; others exist.
    public var code: UInt8

    /// Makes an event of its number.
    @_noAllocation @_noLocks
    public init(code: UInt8) { self.code = code }

    /// The flash of the hook.
    public static var flash: TelephoneEvent { @_noAllocation @_noLocks get { TelephoneEvent(code: 16) } }

    /// The event of a key: `0`…`9`, `*`, `#`, `A`…`D` in any case, and `!` or `f` for the flash.
    public init?(_ key: Character) {
        switch key {
        case "0"..."9":
            guard let digit = key.wholeNumberValue, key.isASCII else { return nil }
            code = UInt8(truncatingIfNeeded: digit)
        case "*": code = 10
        case "#": code = 11
        case "A", "a": code = 12
        case "B", "b": code = 13
        case "C", "c": code = 14
        case "D", "d": code = 15
        case "!", "F", "f": code = 16
        default: return nil
        }
    }

    /// The key's letter; `nil` for events that are no key and no flash.
    public var key: Character? {
        let keys: [Character] = Array("0123456789*#ABCD!")
        return Int(code) < keys.count ? keys[Int(code)] : nil
    }

    /// The key, or the number.
    public var description: String { key.map(String.init) ?? "event \(code)" }
}

/// The payload of a telephone event (RFC 4733 §2.3).
public struct TelephoneEventPayload: Equatable, Sendable {
    /// Which.
    public var event: TelephoneEvent
    /// The event ended.
    public var isEnd: Bool
    /// Power of the tone in decibels below 1 mW, 0…63.
    public var volume: UInt8
    /// Ticks since the packet's timestamp.
    public var duration: UInt16

    /// Size on the wire, in bytes.
    public static var size: Int { @_noAllocation @_noLocks get { 4 } }

    /// Makes a payload.
    @_noAllocation @_noLocks
    public init(event: TelephoneEvent, isEnd: Bool, volume: UInt8, duration: UInt16) {
        self.event = event
        self.isEnd = isEnd
        self.volume = min(63, volume)
        self.duration = duration
    }

    /// Reads the payload of a packet; `nil` if it is shorter than four bytes. Further bytes, which later formats may
    /// add, are ignored.
    @_noAllocation @_noLocks
    public init?(_ payload: Range<Int>, of packet: borrowing RawSpan) {
        guard payload.count >= 4, payload.upperBound <= packet.byteCount,
            let fields = packet.uint32(at: payload.lowerBound)
        else { return nil }
        event = TelephoneEvent(code: UInt8(truncatingIfNeeded: fields >> 24))
        isEnd = fields & 0x80_0000 != 0
        volume = UInt8(truncatingIfNeeded: fields >> 16) & 0x3F
        duration = UInt16(truncatingIfNeeded: fields)
    }

    /// Appends the four bytes.
    @_noAllocation @_noLocks
    public func write(into writer: inout ByteWriter) {
        writer.write(event.code)
        writer.write((isEnd ? 0x80 : 0) | (volume & 0x3F))
        writer.write(duration)
    }
}
