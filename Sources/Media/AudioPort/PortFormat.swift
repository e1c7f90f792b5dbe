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

    private var law: G711? {
        switch encoding {
        case .linear: nil
        case .muLaw: .muLaw
        case .aLaw: .aLaw
        }
    }

    /// Appends samples as bytes.
    public func append(_ samples: some Sequence<Int16>, to bytes: inout [UInt8]) {
        guard let law else {
            for sample in samples {
                bytes.append(UInt8(truncatingIfNeeded: sample))
                bytes.append(UInt8(truncatingIfNeeded: sample >> 8))
            }
            return
        }
        for sample in samples { bytes.append(law == .muLaw ? G711.muLawByte(sample) : G711.aLawByte(sample)) }
    }

    /// Reads bytes as samples. A last byte that is half a sample is left out.
    public func samples(of bytes: some RandomAccessCollection<UInt8>) -> [Int16] {
        if let law { return bytes.map(law.sample) }
        var samples: [Int16] = []
        samples.reserveCapacity(bytes.count / 2)
        var iterator = bytes.makeIterator()
        while let low = iterator.next(), let high = iterator.next() {
            samples.append(Int16(bitPattern: UInt16(high) << 8 | UInt16(low)))
        }
        return samples
    }
}
