internal import Core
internal import Realtime

/// The numbers of ``SpeechNetwork``: from Silero VAD, copyright 2020-present Silero Team, under the MIT license (see NOTICE).
enum SpeechWeights {
    /// All layers, in the order of ``SpeechLayer``. The first detector of the process makes it, 0.8 MB that stay.
    static let shared = SharedTable(numbers())

    private static func numbers() -> [Float] {
        guard let bytes = Base64.bytes(of: weights.utf8), let floats = Base64.floats(of: scales) else {
            preconditionFailure("The weights are written in base 64")
        }
        var numbers = [Float](repeating: 0, count: SpeechLayer.odds.end)
        var (weight, scale) = (0, 0)
        for layer in SpeechLayer.all {
            for index in 0..<layer.inputs * layer.outputs {
                let at = 2 * (weight + index)
                let value = Float(Int16(bitPattern: UInt16(bytes[at]) | UInt16(bytes[at + 1]) << 8))
                numbers[layer.weights + index] = value * floats[scale + index % layer.outputs]
            }
            weight += layer.inputs * layer.outputs
            for output in 0..<layer.outputs { numbers[layer.bias + output] = floats[scale + layer.outputs + output] }
            scale += 2 * layer.outputs
        }
        precondition(
            2 * weight == bytes.count && scale == floats.count, "Each layer has its weights, scales and biases")
        return numbers
    }
}

extension Base64 {
    /// Little-endian floating point numbers; nil if the text is no base 64.
    static func floats(of text: String) -> [Float]? {
        guard let bytes = bytes(of: text.utf8) else { return nil }
        return stride(from: 0, to: bytes.count & ~3, by: 4).map { at in
            let low = UInt32(bytes[at]) | UInt32(bytes[at + 1]) << 8
            return Float(bitPattern: low | UInt32(bytes[at + 2]) << 16 | UInt32(bytes[at + 3]) << 24)
        }
    }
}
