internal import AudioKit

/// How a program's sound is written in bytes.
public struct PortFormat: Sendable, Equatable {
    /// Samples a second.
    public var rate: PortRate
    /// The format of a sample.
    public var encoding: Encoding

    /// How one sample is written. The names are those of configurations and events.
    public enum Encoding: String, CaseIterable, Sendable {
        /// 16 bits, signed, the lower byte first.
        case linear
        /// G.711 µ-law, a byte.
        case muLaw = "mulaw"
        /// G.711 A-law, a byte.
        case aLaw = "alaw"
    }

    /// Makes a format.
    public init(rate: PortRate = .hz16000, encoding: Encoding = .linear) {
        self.rate = rate
        self.encoding = encoding
    }

    /// Bytes in a sample.
    public var sampleBytes: Int { encoding == .linear ? 2 : 1 }

    /// Appends samples as bytes.
    public func append(_ samples: some Sequence<Int16>, to bytes: inout [UInt8]) { append(Array(samples), to: &bytes) }

    // Every sample of every call goes through these two: over generic sequences each costs several calls.

    /// Appends samples as bytes.
    public func append(_ samples: [Int16], to bytes: inout [UInt8]) {
        let start = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: samples.count * sampleBytes))
        var room = bytes.mutableSpan
        switch encoding {
        case .linear:
            for index in samples.indices {
                room[start + 2 * index] = UInt8(truncatingIfNeeded: samples[index])
                room[start + 2 * index + 1] = UInt8(truncatingIfNeeded: samples[index] >> 8)
            }
        case .muLaw: for index in samples.indices { room[start + index] = G711.muLawByte(samples[index]) }
        case .aLaw: for index in samples.indices { room[start + index] = G711.aLawByte(samples[index]) }
        }
    }

    /// Reads bytes as samples. A last byte that is half a sample is left out.
    public func samples(of bytes: some RandomAccessCollection<UInt8>) -> [Int16] { samples(of: Array(bytes)) }

    /// Reads bytes as samples. A last byte that is half a sample is left out.
    public func samples(of bytes: [UInt8]) -> [Int16] {
        var samples = [Int16](repeating: 0, count: bytes.count / sampleBytes)
        var room = samples.mutableSpan
        switch encoding {
        case .linear:
            for index in 0..<room.count {
                room[index] = Int16(bitPattern: UInt16(bytes[2 * index + 1]) << 8 | UInt16(bytes[2 * index]))
            }
        case .muLaw: for index in 0..<room.count { room[index] = G711.muLawSample(bytes[index]) }
        case .aLaw: for index in 0..<room.count { room[index] = G711.aLawSample(bytes[index]) }
        }
        return samples
    }
}
