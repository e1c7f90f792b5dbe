/// Finds windows of what was sent in what was received.
struct WindowSearch {
    let sent: [Int16]
    let received: [Int16]
    private let sentLow: [Float]
    private let receivedLow: [Float]
    /// How far from the expected position to search, in samples at 8 kHz.
    private let radius: Int
    private let windowLow: Int
    private let transform: FourierTransform

    /// The best position at 8 kHz is off by at most this many samples at 48 kHz.
    private static let fineRadius = 8

    struct Match: Equatable {
        /// Normalised cross-correlation there, 0…1.
        let likeness: Double
        /// Delay of its position relative to that in the sent sound, in samples at 48 kHz.
        let delay: Int

        /// Whether this is the window again, and not the most similar of other sounds.
        var isFound: Bool { likeness >= LikenessReport.foundLikeness }
    }

    init(sent: [Int16], received: [Int16], sentLow: [Float], receivedLow: [Float], radius: Int) {
        self.sent = sent
        self.received = received
        self.sentLow = sentLow
        self.receivedLow = receivedLow
        self.radius = radius
        windowLow = LikenessAnalysis.windowSamples / LikenessAnalysis.decimation
        transform = FourierTransform(minimumCount: windowLow + windowLow + 2 * radius)
    }

    /// The best match of each window of `sent`, whose starts ascend, where the delay of the whole is `delay` (samples at
    /// 48 kHz).
    ///
    /// Each is searched for near `delay` and near the last one found before it; what is not found there, near the next
    /// one found after it.
    func matches(windowsAt starts: [Int], delay: Int) -> [Match] {
        var matches: [Match] = []
        var lastFound = delay
        for start in starts {
            let match = bestMatch(windowAt: start, delay: delay, hint: lastFound)
            if match.isFound { lastFound = match.delay }
            matches.append(match)
        }
        lastFound = delay
        for index in matches.indices.reversed() {
            if !matches[index].isFound {
                let match = bestMatch(windowAt: starts[index], delay: delay, hint: lastFound)
                if match.likeness > matches[index].likeness { matches[index] = match }
            }
            if matches[index].isFound { lastFound = matches[index].delay }
        }
        return matches
    }

    /// The best match of the window of `sent` at `start`, around `delay` or around `hint` (samples at 48 kHz).
    private func bestMatch(windowAt start: Int, delay: Int, hint: Int) -> Match {
        var best = Match(likeness: 0, delay: delay)
        // A sound may be too high to be found at 8 kHz, and right where its neighbour was.
        search(around: start + hint, windowAt: start, &best)
        var coarse = [coarsePlace(windowAt: start, delay: delay)]
        if abs(hint - delay) > radius * LikenessAnalysis.decimation / 2 {
            coarse.append(coarsePlace(windowAt: start, delay: hint))
        }
        for place in coarse where abs(place - start - hint) > Self.fineRadius / 2 {
            search(around: place, windowAt: start, &best)
        }
        return best
    }

    private func search(around place: Int, windowAt start: Int, _ best: inout Match) {
        for place in place - Self.fineRadius...place + Self.fineRadius {
            guard place >= start, place + LikenessAnalysis.windowSamples <= received.count else { continue }
            let likeness = likeness(windowAt: start, at: place)
            if likeness > best.likeness { best = Match(likeness: likeness, delay: place - start) }
        }
    }

    /// The best position at 8 kHz, as an index into `received`.
    private func coarsePlace(windowAt start: Int, delay: Int) -> Int {
        let startLow = start / LikenessAnalysis.decimation
        let window = sentLow[startLow..<min(startLow + windowLow, sentLow.count)]
        let expected = (start + delay) / LikenessAnalysis.decimation
        // Nothing returns before it is sent.
        let from = max(startLow, expected - radius)
        let to = min(receivedLow.count, expected + radius + windowLow)
        guard to - from >= window.count else { return start + delay }
        let area = receivedLow[from..<to]
        let correlation = transform.correlate(window, area)

        // The energy of the part compared, moved along with it.
        var energy = area.prefix(window.count).reduce(0.0) { $0 + Double($1 * $1) }
        var best = (place: from, score: 0.0)
        for offset in 0...(area.count - window.count) {
            // A part with less energy than one step of 16 bits a sample is silence.
            let score = Double(correlation[offset]) / max(energy, Double(window.count)).squareRoot()
            if score > best.score { best = (from + offset, score) }
            if offset + window.count < area.count {
                let leaving = receivedLow[from + offset]
                let entering = receivedLow[from + offset + window.count]
                energy += Double(entering * entering) - Double(leaving * leaving)
            }
        }
        return best.score > 0 ? best.place * LikenessAnalysis.decimation : start + delay
    }

    /// Normalised cross-correlation of one window with one position, without offsets; 0 if either is silent.
    private func likeness(windowAt start: Int, at place: Int) -> Double {
        var sumA = 0
        var sumB = 0
        var squaresA = 0
        var squaresB = 0
        var products = 0
        for index in 0..<LikenessAnalysis.windowSamples {
            let a = Int(sent[start + index])
            let b = Int(received[place + index])
            sumA &+= a
            sumB &+= b
            squaresA &+= a &* a
            squaresB &+= b &* b
            products &+= a &* b
        }
        let count = Double(LikenessAnalysis.windowSamples)
        let meanA = Double(sumA) / count
        let meanB = Double(sumB) / count
        let varianceA = Double(squaresA) / count - meanA * meanA
        let varianceB = Double(squaresB) / count - meanB * meanB
        guard varianceA > 0, varianceB > 0 else { return 0 }
        let covariance = Double(products) / count - meanA * meanB
        return max(0, min(1, covariance / (varianceA * varianceB).squareRoot()))
    }
}
