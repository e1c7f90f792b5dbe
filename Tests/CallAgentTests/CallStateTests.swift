import BotCalls
import BotWire
import Call
import CallMedia
import CallPrograms
import Testing

@testable import CallAgent

@Suite("What a device keeps of its configuration for calls that run")
struct CallStateTests {
    @Test("A call keeps what the configuration said when it began")
    func rules() {
        var behaviour = BehaviourConfiguration()
        behaviour.source = .file(path: "/a.wav", loops: false)
        behaviour.hangsUpAfterFile = true
        behaviour.maximumDuration = .seconds(60)
        let configured = CallRules(behaviour, for: behaviour.audio(named: "a"))
        #expect(configured.hangsUpAfterFile && configured.maximumDuration == .seconds(60))
        let other = CallRules(behaviour, for: AudioBehaviour(source: .file(path: "/b.wav", loops: false)))
        #expect(!other.hangsUpAfterFile && other.maximumDuration == .seconds(60))
    }

    @Test(
        "A call lasts four hours at most, and a silent peer is probed after half a minute, if nothing else is configured"
    )
    func usualRules() {
        let configuration = DeviceConfiguration(account: AccountConfiguration(server: "http://127.0.0.1:1"))
        let rules = CallRules(
            configuration.behaviour, for: configuration.behaviour.audio(named: "a"),
            silenceTimeout: configuration.media.silenceTimeout)
        #expect(rules.maximumDuration == .seconds(14_400) && rules.silenceTimeout == .seconds(30))
    }

    @Test("A behaviour with another attachment is not taken while the device runs; one with the same bot is")
    func adoption() throws {
        func configuration(
            _ source: BehaviourConfiguration.Source, _ attachment: BehaviourConfiguration.Source?, seconds: Int
        ) -> DeviceConfiguration {
            var configuration = DeviceConfiguration(account: AccountConfiguration(server: "http://127.0.0.1:1"))
            configuration.behaviour.source = source
            configuration.behaviour.attachment = attachment
            configuration.behaviour.maximumDuration = .seconds(seconds)
            return configuration
        }
        let address = try #require(WebAddress("ws://127.0.0.1:1/ws", WebAddress.Scheme.sockets))
        let bot = BotPlan(address: address, wire: .twilio)
        var otherBot = bot
        otherBot.account = "AC1"
        let program = ProgramPlan(command: ["cat"])
        for (first, second, isTaken) in [
            (BehaviourConfiguration.Source.bot(bot), BehaviourConfiguration.Source.bot(bot), true),
            (.bot(bot), .bot(otherBot), false), (.bot(bot), nil, false), (nil, .bot(bot), false),
            (.exec(program), .exec(ProgramPlan(command: ["tac"])), true), (.exec(program), .bot(bot), false),
            (nil, .exec(program), false), (nil, nil, true),
        ] as [(BehaviourConfiguration.Source?, BehaviourConfiguration.Source?, Bool)] {
            var running = configuration(.silence, first, seconds: 1)
            let hasTaken = running.adopt(configuration(.echo, second, seconds: 2))
            #expect(hasTaken == isTaken)
            #expect(running.behaviour.maximumDuration == .seconds(isTaken ? 2 : 1))
        }
        // With the same bot as source or as attachment the device has set up the same.
        var running = configuration(.bot(bot), nil, seconds: 1)
        let hasTaken = running.adopt(configuration(.silence, .bot(bot), seconds: 2))
        #expect(hasTaken)
    }
}
