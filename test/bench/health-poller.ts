import { get } from 'node:http';

/**
 * A process of its own: asks an address every ten milliseconds, and writes the milliseconds of each response, once it is told to
 * end. Polls do not wait for each other, so one that is held up does not hide the next one.
 */
const INTERVAL_MS = 10;
const [address = ''] = process.argv.slice(2);
const milliseconds: number[] = [];
let failures = 0;
/** The poller may be kept from computing by others itself; what that takes at most is told beside the responses. */
let ownDelay = 0;
let lastPoll = performance.now();

const timer = setInterval(() => {
  const now = performance.now();
  ownDelay = Math.max(ownDelay, now - lastPoll - INTERVAL_MS);
  lastPoll = now;
  get(address, (response) => {
    response.resume();
    response.once('end', () => {
      milliseconds.push(performance.now() - now);
      if (response.statusCode !== 200) failures++;
    });
  }).once('error', () => {
    failures++;
  });
}, INTERVAL_MS);

process.once('message', () => {
  clearInterval(timer);
  setTimeout(() => process.send?.({ milliseconds, failures, ownDelay }, () => process.exit(0)), 200);
});
