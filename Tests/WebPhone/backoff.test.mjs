import assert from 'node:assert/strict';
import test from 'node:test';
import { page } from './page.mjs';

const { delayBefore } = await page('backoff.js');

test('CONN-4: A wait lies between 0 and the time since the connection was lost', () => {
  assert.equal(delayBefore(4_000, 0, () => 1), 4_000);
  assert.equal(delayBefore(4_000, 0, () => 0.5), 2_000);
  assert.equal(delayBefore(4_000, 0, () => 0), 0);
});

test('CONN-4: The first wait has half a second as its upper end', () => {
  assert.equal(delayBefore(0, 0, () => 1), 500);
  assert.equal(delayBefore(499, 0, () => 1), 500);
});

test('CONN-4: Each attempt that the exchange took up in vain doubles the upper end', () => {
  assert.deepEqual([1, 2, 3, 4, 5].map((burdens) => delayBefore(0, burdens, () => 1)), [1_000, 2_000, 4_000, 8_000, 16_000]);
});

test('CONN-4: No wait is longer than 30 seconds', () => {
  assert.equal(delayBefore(3_600_000, 0, () => 1), 30_000);
  assert.equal(delayBefore(0, 1_000_000, () => 1), 30_000);
});
