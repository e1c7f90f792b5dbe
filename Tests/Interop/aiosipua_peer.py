#!/usr/bin/env python3
"""A caller of aiosipua at this machine: sends a tone and keeps what it hears.

usage: aiosipua_peer.py HOST PORT USER TONE.wav HEARD.wav

Prints how many packets it received. TONE.wav has 8 kHz, 16 bits, one channel.
"""

import asyncio
import audioop
import random
import struct
import sys
import wave

from aiosipua import SipUAC, build_sdp
from aiosipua.transport import UdpSipTransport

FRAME = 160


class Sound(asyncio.DatagramProtocol):
    """PCMU both ways."""

    def __init__(self):
        self.heard, self.packets = bytearray(), 0

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, _):
        if len(data) > 12 and data[1] & 0x7F == 0:
            self.packets += 1
            self.heard += audioop.ulaw2lin(data[12:], 2)

    async def say(self, samples, address):
        source, number = random.getrandbits(32), random.getrandbits(15)
        start = asyncio.get_running_loop().time()
        for index in range(len(samples) // (2 * FRAME)):
            payload = audioop.lin2ulaw(samples[2 * FRAME * index : 2 * FRAME * (index + 1)], 2)
            header = struct.pack("!BBHII", 0x80, 0, (number + index) & 0xFFFF, FRAME * index, source)
            self.transport.sendto(header + payload, address)
            await asyncio.sleep(max(0, start + 0.02 * (index + 1) - asyncio.get_running_loop().time()))


async def main():
    host, port, user, tone, heard = sys.argv[1:]
    loop = asyncio.get_running_loop()
    media, sound = await loop.create_datagram_endpoint(Sound, local_addr=(host, 0))
    transport = UdpSipTransport(local_addr=(host, 25190))
    uac = SipUAC(transport)
    transport.on_message = uac.handle_response
    await transport.start()
    offer = build_sdp(local_ip=host, rtp_port=media.get_extra_info("sockname")[1], payload_type=0, codec_name="PCMU")
    call = uac.send_invite("sip:alice@sip.test", f"sip:{user}@sip.test", (host, int(port)), sdp_offer=offer, session_expires=1800)
    await call.wait_answered(10)
    with wave.open(tone, "rb") as file:
        await sound.say(file.readframes(file.getnframes()), tuple(call.sdp_answer.rtp_address))
    call.hangup(uac)
    await asyncio.sleep(0.5)
    with wave.open(heard, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
        file.writeframes(bytes(sound.heard))
    print(sound.packets)


if __name__ == "__main__":
    asyncio.run(main())
