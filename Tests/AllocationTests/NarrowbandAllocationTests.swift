import AudioKit
import CThreadCounters
import Playout
import Testing
import Core

@testable import CallMedia
@testable import MediaEngine

/// G.711 in virtual time: unoptimised, its filters are too slow for twenty calls at once.
@Suite("Allocations of G.711", .serialized)
struct NarrowbandAllocationTests {
    @Test("Finding silence and describing it allocates nothing")
    func silence() throws {
        var settings = EncoderSettings()
        settings.dtx = true
        var encoder = try SoundEncoder(.pcmu, settings, describesNoise: true)
        let samples = [Int16](repeating: 3, count: 960)
        var bytes = [UInt8](repeating: 0, count: 160)
        var (before, described) = (Int64(0), 0)
        for index in 0..<400 {
            if index == 200 { before = handset_test_allocations() }
            var room = bytes.mutableSpan
            _ = encoder.encode(samples.span, into: &room)
            if encoder.isNoise { described += 1 }
        }
        let allocations = handset_test_allocations() - before
        #expect(allocations == 0 && described > 10)
    }

    @Test("Encoding, playing, making up and comfort noise allocate nothing")
    func steadyState() throws {
        var encoder = try SoundEncoder(.pcma, EncoderSettings())
        var buffer = PlayoutBuffer(
            configuration: PlayoutConfiguration(), stream: StreamDecoder(G711Decoder(.aLaw)))
        var samples = [Int16](repeating: 1_000, count: 960)
        var bytes = [UInt8](repeating: 0, count: 160)
        let noise: [UInt8] = [50, 127, 120]
        var encoded = 0
        var before: Int64 = 0
        for index in 0..<400 {
            // The first half of it is a warm-up: unoptimised code makes descriptions of its types when it first meets them.
            if index == 200 { before = handset_test_allocations() }
            let now = Instant(nanoseconds: Int64(index) * 20_000_000)
            var room = bytes.mutableSpan
            encoded += encoder.encode(samples.span, into: &room)
            if index % 200 == 100 {
                buffer.insertNoise(
                    payload: noise.span.bytes, number: Int64(index),
                    timestamp: UInt32(truncatingIfNeeded: index * 160), ssrc: 1, arrival: now)
            } else if index % 10 != 0, index % 200 < 100 || index % 200 >= 120 {
                buffer.insert(
                    payload: bytes.span.bytes, number: Int64(index),
                    timestamp: UInt32(truncatingIfNeeded: index * 160), marker: false, ssrc: 1, arrival: now)
            }
            var frame = samples.mutableSpan
            _ = buffer.pull(into: &frame, at: now)
        }
        let allocations = handset_test_allocations() - before
        #expect(allocations == 0)
        #expect(encoded == 400 * 160 && buffer.statistics.samplesConcealed > 0)
    }

    @Test("A change of codec neither allocates nor frees where the call is run")
    func change() throws {
        let remote = try #require(SocketAddress(host: "192.0.2.1", port: 5_000))
        var plan = MediaCallPlan(
            peer: PeerPlan(
                transport: .direct(to: remote), protection: .plain, remoteSSRC: nil, localSSRC: 1, canonicalName: "a",
                sendPayloadType: 111, receivePayloadType: 111, randomSeed: 1),
            encoder: EncoderSettings(), playout: PlayoutConfiguration(), audio: AudioBehaviour(source: .silence),
            start: .atOnce)
        let call = try MediaCall.make(id: MediaCallID(rawValue: 1), plan: plan, rings: CallRings(), at: .zero)
        var changes: [UnsafeMutablePointer<MediaCallChange>] = []
        for index in 0..<12 {
            let before = plan.codec
            plan.codec = [.pcmu, .opus, .opus, .pcma, .pcmu, .opus][index % 6]
            plan.peer.clockRate = plan.codec == .opus ? 48_000 : 8_000
            plan.peer.repairsLoss = index % 2 == 1
            let change = UnsafeMutablePointer<MediaCallChange>.allocate(capacity: 1)
            change.initialize(to: try MediaCallChange(to: plan, from: before))
            changes.append(change)
        }
        var (allocations, frees) = (Int64(0), Int64(0))
        for change in changes {
            let before = (handset_test_allocations(), handset_test_frees())
            _ = call.pointee.change(change)
            allocations += handset_test_allocations() - before.0
            frees += handset_test_frees() - before.1
        }
        #expect(allocations == 0 && frees == 0)
        for change in changes {
            change.deinitialize(count: 1)
            change.deallocate()
        }
        call.deinitialize(count: 1)
        call.deallocate()
    }
}
