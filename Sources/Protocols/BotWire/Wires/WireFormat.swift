/// How sound is written on a wire. There is one channel.
public struct WireFormat: Hashable, Sendable {
    /// How a sample is written.
    public enum Encoding: Hashable, Sendable {
        /// G.711 µ-law: a byte.
        case mulaw
        /// G.711 A-law: a byte.
        case alaw
        /// 16 bits, signed, the lower byte first.
        case linear
    }

    /// How a sample is written.
    public let encoding: Encoding
    /// Samples a second.
    public let rateHz: Int

    /// µ-law at 8 kHz.
    public static let mulaw = WireFormat(.mulaw, rateHz: 8_000)
    /// A-law at 8 kHz.
    public static let alaw = WireFormat(.alaw, rateHz: 8_000)

    /// Linear samples at a rate.
    public static func linear(_ rateHz: Int) -> WireFormat { WireFormat(.linear, rateHz: rateHz) }

    init(_ encoding: Encoding, rateHz: Int) {
        self.encoding = encoding
        self.rateHz = rateHz
    }

    /// Refuses sound that is none, or too much, or not of whole samples.
    func check(_ bytes: [UInt8]) throws(WireFault) {
        guard !bytes.isEmpty else { throw WireFault(.wrongSound, "there is no sound in the message") }
        guard bytes.count <= WireLimits.payloadBytes else {
            throw WireFault(.tooLong, "the sound of a message has \(WireLimits.payloadBytes) bytes at most")
        }
        guard bytes.count.isMultiple(of: sampleBytes) else {
            throw WireFault(.wrongSound, "sound must be of whole samples, of two bytes each")
        }
    }

    /// Bytes in a sample.
    public var sampleBytes: Int {
        switch encoding {
        case .mulaw, .alaw: 1
        case .linear: 2
        }
    }
}
