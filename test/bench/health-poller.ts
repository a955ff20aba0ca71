import { get } from 'node:http';

/**
 * A separate process that polls an address every ten milliseconds and writes the duration of each response at the end.
 * Polls are independent, so a slow one does not hide the next.
 */
const INTERVAL_MS = 10;
const [address = ''] = process.argv.slice(2);
const milliseconds: number[] = [];
let failures = 0;
/** Other processes may delay the poller itself; its longest delay is reported, too. */
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
