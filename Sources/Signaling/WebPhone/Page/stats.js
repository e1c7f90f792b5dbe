// What getStats (W3C webrtc-stats) knows of a call, as the few numbers that people can judge it by.

/**
 * Numbers are `null` while they are not known.
 * @typedef {{
 *   roundTrip: number | null, jitterBuffer: number | null, loss: number | null,
 *   levelHere: number | null, levelThere: number | null, codec: string, path: string,
 * }} Sample milliseconds, milliseconds, per cent, dBFS
 */

/** Samples one connection; what is counted over all time is told for the time since the last sample. */
export class Sampler {
  #last = { delay: 0, emitted: 0, lost: 0, received: 0 };

  /**
   * @param {RTCPeerConnection} connection
   * @returns {Promise<Sample>}
   */
  async sample(connection) {
    const report = await connection.getStats();
    /** @type {Record<string, any>} */
    const found = {};
    for (const entry of report.values()) {
      if (entry.type === 'transport') found.pair = report.get(entry.selectedCandidatePairId);
      else if (entry.type === 'candidate-pair' && entry.nominated && !found.pair) found.pair = entry;
      else if (entry.kind === 'audio') found[entry.type] = entry;
    }
    const { pair, 'inbound-rtp': inbound, 'media-source': source, 'remote-inbound-rtp': remote } = found;
    const trip = pair?.currentRoundTripTime ?? remote?.roundTripTime;
    return {
      roundTrip: trip === undefined ? null : trip * 1000,
      ...this.#recent(inbound),
      levelHere: decibels(source?.audioLevel),
      levelThere: decibels(inbound?.audioLevel),
      codec: codecName(report.get(inbound?.codecId)),
      path: pathName(report.get(pair?.localCandidateId), report.get(pair?.remoteCandidateId)),
    };
  }

  /** @param {any} inbound */
  #recent(inbound) {
    if (!inbound) return { jitterBuffer: null, loss: null };
    const now = {
      delay: inbound.jitterBufferDelay ?? 0, emitted: inbound.jitterBufferEmittedCount ?? 0,
      lost: inbound.packetsLost ?? 0, received: inbound.packetsReceived ?? 0,
    };
    const last = this.#last;
    this.#last = now;
    return { jitterBuffer: delayBetween(last, now), loss: lossBetween(last, now) };
  }
}

/**
 * Mean delay in milliseconds of what was played between two counts.
 * @param {{ delay: number, emitted: number }} last
 * @param {{ delay: number, emitted: number }} now
 */
export function delayBetween(last, now) {
  const emitted = now.emitted - last.emitted;
  return emitted > 0 ? ((now.delay - last.delay) / emitted) * 1000 : null;
}

/**
 * Per cent of packets lost between two counts; late ones can make the count of lost packets fall.
 * @param {{ lost: number, received: number }} last
 * @param {{ lost: number, received: number }} now
 */
export function lossBetween(last, now) {
  const lost = Math.max(0, now.lost - last.lost);
  const expected = lost + Math.max(0, now.received - last.received);
  return expected > 0 ? (100 * lost) / expected : null;
}

/**
 * @param {number | undefined} level 0 to 1, linear
 * @returns {number | null} dBFS, not below −90
 */
export function decibels(level) {
  return level === undefined ? null : Math.max(-90, 20 * Math.log10(level || 1e-9));
}

/** @param {any} codec */
function codecName(codec) {
  return codec ? `${codec.mimeType.split('/')[1]} ${codec.clockRate / 1000} kHz` : '';
}

/** @param {any} local @param {any} remote */
function pathName(local, remote) {
  if (!local || !remote) return '';
  const isRelayed = local.candidateType === 'relay' || remote.candidateType === 'relay';
  return `${isRelayed ? 'relayed' : 'direct'} over ${String(local.protocol).toUpperCase()}, encrypted`;
}
