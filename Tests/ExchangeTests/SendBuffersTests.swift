@testable import ExchangeCore
@testable import ExchangeServer
import HTTPTransport
import NIOCore
import NIOEmbedded
import SignalWire
import TestSupport
import Testing

@Suite struct SendBuffersTests {
    private typealias Buffers = SendBuffers<Int>

    @Test(
        "Queues never exceed their limits, and the connection that is closed has the most of the largest user",
        arguments: 0..<20)
    func bounds(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let limits = Buffers.Limits(total: 1_000_000, account: 300_000)
        var buffers = Buffers(limits)
        var model: [Int: (bytes: Int, payer: Payer)] = [:]
        let payers: [Payer] = [.strangers, .guests, .account("alice"), .account("bob"), .visitors("lobby")]
        for _ in 0..<2_000 {
            let connection = Int.random(in: 0..<60, using: &generator)
            let payer = payers[connection % payers.count]
            let bytes = Bool.random(using: &generator) ? Int.random(in: 0...90_000, using: &generator) : 0
            buffers.set(connection, bytes, of: payer)
            model[connection] = bytes > 0 ? (bytes, payer) : nil
            if buffers.isOver(payer) {
                while let loser = buffers.loser(after: payer) {
                    guard let lost = model.removeValue(forKey: loser) else {
                        Issue.record("somebody is dropped for whom nothing waits")
                        return
                    }
                    let own = model.values.filter { $0.payer == lost.payer }
                    #expect(own.allSatisfy { $0.bytes <= lost.bytes })
                    buffers.set(loser, 0, of: lost.payer)
                }
                #expect(buffers.total <= limits.total / 8 * 7)
            }
            #expect(buffers.total == model.values.reduce(0) { $0 + $1.bytes })
            #expect(buffers.total <= limits.total)
            for payer in payers {
                let sum = model.values.filter { $0.payer == payer }.reduce(0) { $0 + $1.bytes }
                #expect(buffers.bytes(of: payer) == sum)
                if case .account = payer { #expect(sum <= limits.account) }
            }
            #expect(Set(buffers.connections) == Set(model.keys))
        }
    }

    @Test("Who reads a little slowly stays, when others who do not read at all take up what there is")
    func bystander() {
        var buffers = Buffers(Buffers.Limits(total: 1_000_000, account: 1_000_000))
        buffers.set(0, 120_000, of: .account("honest"))
        var dropped: [Int] = []
        for connection in 1..<200 {
            let payer = Payer.account(connection.isMultiple(of: 2) ? "thief" : "accomplice")
            buffers.set(connection, 50_000, of: payer)
            guard buffers.isOver(payer) else { continue }
            while let loser = buffers.loser(after: payer) {
                dropped.append(loser)
                buffers.set(loser, 0, of: payer)
                buffers.measure(loser, 0)
            }
        }
        #expect(!dropped.isEmpty && !dropped.contains(0))
        #expect(buffers.bytes(of: .account("honest")) == 120_000)
    }

    @Test("A connection that stops reading is measured, counted, and gone from the counters when it is closed")
    func counters() throws {
        let scenario = HubScenario(users: ["alice"])
        let pool = scenario.hub.sendBuffers
        let share = SendBufferShare(pool)
        let meter = OutboundMeter(share)
        let channel = EmbeddedChannel(handler: meter, loop: scenario.loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        share.note(5_000, of: meter)
        #expect(scenario.hub.snapshot().sendBufferBytes == 5_000)
        share.payer = .account("alice")
        share.note(7_000, of: meter)
        #expect(scenario.hub.snapshot().sendBufferBytes == 7_000)
        try channel.close().wait()
        #expect(scenario.hub.snapshot().sendBufferBytes == 0)
        #expect(scenario.hub.snapshot().slowClients == 0)
    }

    @Test("A client for which more waits than one may have is dropped and counted")
    func dropped() throws {
        let scenario = HubScenario(users: [])
        let meter = OutboundMeter(SendBufferShare(scenario.hub.sendBuffers))
        let channel = EmbeddedChannel(handler: meter, loop: scenario.loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        channel.isWritable = false
        channel.pipeline.fireChannelWritabilityChanged()
        #expect(!channel.isActive)
        #expect(scenario.hub.snapshot().slowClients == 1)
    }
}

@Suite struct MemorySharesTests {
    @Test(
        "All shares together fit into half of what the machine has, from 64 MiB on",
        arguments: [64, 128, 256, 512, 1_024])
    func fitting(mebibytes: Int) {
        let shares = MemoryShares.fitting(mebibytes << 20)
        #expect(shares.total <= (mebibytes << 20) / 2)
        #expect(shares.kept >= MemoryShares.leastKept)
    }

    @Test("By default 256 MiB are kept, less on a small machine, and never less than can be configured")
    func defaults() {
        #expect(MemoryShares.fitting(nil).kept == 256 << 20)
        #expect(MemoryShares.fitting(64 << 30).kept == 256 << 20)
        #expect(MemoryShares.fitting(256 << 20).kept == 48 << 20)
        #expect(MemoryShares.fitting(1).kept == 8 << 20)
        let shares = MemoryShares(kept: 256 << 20)
        #expect(shares.sendBuffers == 64 << 20 && shares.journal == 32 << 20 && shares.turns == 8 << 20)
        #expect(shares.messages == 64 << 20 && shares.total == 480 << 20)
    }

    @Test("Clients without a login have a sixteenth of the memory by default, between 4 and 16 MiB")
    func logins() {
        for (mebibytes, share) in [(32, 4), (64, 4), (128, 8), (200, 12), (256, 16), (65_536, 16)] {
            #expect(MemoryShares.logins(mebibytes << 20) >> 20 == share, "\(mebibytes) MiB")
        }
        #expect(MemoryShares.logins(nil) == 16 << 20)
        var configuration = ExchangeConfiguration()
        #expect(configuration.loginShare <= 16 << 20)
        configuration.loginMemoryBytes = 100 << 20
        #expect(configuration.loginShare == 100 << 20)
    }
}
