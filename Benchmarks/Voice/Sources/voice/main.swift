import Foundation
import Realtime

@testable import VoiceActivity

// voice features|odds|events RATE [FRAME-MS]
//
// Reads pairs of 16-bit samples, what is heard and what we say, from standard input. `features` writes the
// values of SpeechJudge for each 32 ms, `odds` three numbers for each 10 ms, as 32-bit floating point. `events` writes lines, and the
// time that a frame took to standard error.

func standardInput() -> (heard: [Int16], said: [Int16]) {
    let data = FileHandle.standardInput.readDataToEndOfFile()
    let pairs = data.withUnsafeBytes { Array($0.bindMemory(to: Int16.self)) }
    let count = pairs.count / 2
    return ((0..<count).map { pairs[2 * $0] }, (0..<count).map { pairs[2 * $0 + 1] })
}

func write(_ values: [Float]) {
    values.withUnsafeBytes { FileHandle.standardOutput.write(Data($0)) }
}

func features(_ rateHz: Int) {
    let (heard, said) = standardInput()
    var first = NarrowbandDecimator(ratio: rateHz / 8_000)
    var second = NarrowbandDecimator(ratio: rateHz / 8_000)
    var meter = SoundMeter()
    var judge = SpeechJudge()
    var network = SpeechNetwork()
    var hiss = Hiss()
    var out: [Float] = []
    var count = 0
    let block = NarrowbandDecimator.block
    var x = FloatBuffer(capacity: block)
    var y = FloatBuffer(capacity: block)
    for start in stride(from: 0, to: heard.count, by: block) {
        let end = min(heard.count, start + block)
        let made = first.take(heard.span, from: start, to: end, into: &x)
        _ = second.take(said.span, from: start, to: end, into: &y)
        for index in 0..<made {
            meter.add(heard: x[index], said: y[index])
            count += 1
            if count % 80 == 0 { judge.note(meter.measure()) }
            guard network.take(x[index] + hiss.next()) else { continue }
            judge.judge(network)
            for number in 0..<SpeechJudge.count { out.append(judge.value(number)) }
        }
    }
    write(out)
}

func odds(_ rateHz: Int) {
    let (heard, said) = standardInput()
    var activity = VoiceActivity(rateHz: rateHz)
    let hop = rateHz / 100
    var out: [Float] = []
    for from in stride(from: 0, through: heard.count - hop, by: hop) {
        _ = activity.take(heard.span.extracting(from..<from + hop), sent: said.span.extracting(from..<from + hop))
        out += [activity.odds.possible, activity.odds.certain, activity.odds.lasting]
    }
    write(out)
}

func events(_ rateHz: Int, frameMilliseconds: Int) {
    let (heard, said) = standardInput()
    let length = rateHz * frameMilliseconds / 1_000
    var activity = VoiceActivity(rateHz: rateHz)
    var frames = 0
    let clock = ContinuousClock()
    let start = clock.now
    var lines = ""
    for from in stride(from: 0, through: heard.count - length, by: length) {
        let found = activity.take(
            heard.span.extracting(from..<from + length), sent: said.span.extracting(from..<from + length))
        frames += 1
        for index in 0..<found.count {
            lines += "\(found[index].kind) \(found[index].position) \(found[index].decidedAt)\n"
        }
    }
    let elapsed = (clock.now - start) / max(1, frames)
    print(lines, terminator: "")
    FileHandle.standardError.write(Data("\(elapsed)\n".utf8))
}

let arguments = CommandLine.arguments
guard arguments.count >= 3, let rateHz = Int(arguments[2]) else {
    print("usage: voice features|odds|events RATE [FRAME-MS]")
    exit(2)
}
switch arguments[1] {
case "features": features(rateHz)
case "odds": odds(rateHz)
default: events(rateHz, frameMilliseconds: arguments.count > 3 ? Int(arguments[3]) ?? 20 : 20)
}
