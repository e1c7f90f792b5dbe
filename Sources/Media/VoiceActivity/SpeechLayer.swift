internal import Realtime

/// A layer of ``SpeechNetwork``: where its numbers are in the table, input by input, and how many it has.
struct SpeechLayer: Sendable, BitwiseCopyable {
    let weights: Int
    let bias: Int
    let inputs: Int
    let outputs: Int

    /// The layers in the order of the table, each with its weights before its biases.
    static var first: SpeechLayer { @_noAllocation @_noLocks get { SpeechLayer(at: 0, inputs: 192, outputs: 128) } }
    static var second: SpeechLayer {
        @_noAllocation @_noLocks get { SpeechLayer(at: first.end, inputs: 384, outputs: 64) }
    }
    /// Of the third layer's three moments the first is always silent, of the fourth's all but one.
    static var third: SpeechLayer {
        @_noAllocation @_noLocks get { SpeechLayer(at: second.end, inputs: 128, outputs: 64) }
    }
    static var fourth: SpeechLayer {
        @_noAllocation @_noLocks get { SpeechLayer(at: third.end, inputs: 64, outputs: 128) }
    }
    static var cells: SpeechLayer {
        @_noAllocation @_noLocks get { SpeechLayer(at: fourth.end, inputs: 256, outputs: 512) }
    }
    static var odds: SpeechLayer {
        @_noAllocation @_noLocks get { SpeechLayer(at: cells.end, inputs: 128, outputs: 1) }
    }

    static var all: [SpeechLayer] { [first, second, third, fourth, cells, odds] }

    /// The number after its last.
    var end: Int { @_noAllocation @_noLocks get { bias &+ outputs } }

    @_noAllocation @_noLocks
    private init(at start: Int, inputs: Int, outputs: Int) {
        weights = start
        bias = start &+ inputs &* outputs
        self.inputs = inputs
        self.outputs = outputs
    }

    /// Computes the results of the numbers from `first` on, and writes them from `start` on.
    @_noAllocation @_noLocks
    func multiply(_ numbers: inout FloatBuffer, from first: Int, by table: SharedTable, into start: Int) {
        numbers.multiply(from: first, inputs: inputs, by: table, at: weights, outputs: outputs, into: start)
    }

    /// The same, where no result is less than 0.
    @_noAllocation @_noLocks
    func rectify(_ numbers: inout FloatBuffer, from first: Int, by table: SharedTable, into start: Int) {
        multiply(&numbers, from: first, by: table, into: start)
        for output in start..<start &+ outputs { numbers[output] = max(0, numbers[output]) }
    }
}
