import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { REFERENCE } from '../bench/floor.ts';

export type MeasuredRequest = {
  readonly address: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

type BlockMeasurement = { readonly status: number; readonly milliseconds: number };

/** About ten seconds with growing pauses, so that other processes rarely disturb all attempts. */
const MAX_TRIES = 45;
const SIGNATURES = 10;
const PAUSE_MS = 10;

/** Sends from a separate thread, so that sending is not measured. */
const SENDER = `
const { parentPort } = require('node:worker_threads');
const { request } = require('node:http');
parentPort.on('message', ({ address, method, headers, body }) => {
  const bytes = Buffer.from(body, 'latin1');
  const call = request(address, { method, headers: { ...headers, 'Content-Length': bytes.length } }, (answer) => {
    answer.resume();
    answer.once('end', () => parentPort.postMessage(answer.statusCode));
  });
  call.once('error', () => parentPort.postMessage(0));
  call.end(bytes);
});
`;

/** Processor time of this thread. */
function threadMilliseconds(): number {
  // Linux updates the processor time of a running thread only when that of the process is read; otherwise its resolution is
  // 4 ms.
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

const KEYS = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** Slowness relative to the reference machine, measured with signatures as in the bench. */
function machineSlowness(): number {
  const data = Buffer.alloc(200);
  const startedAt = threadMilliseconds();
  for (let i = 0; i < SIGNATURES; i++) verify('sha256', data, KEYS.publicKey, sign('sha256', data, KEYS.privateKey));
  return (threadMilliseconds() - startedAt) / (SIGNATURES * (REFERENCE.signMs + REFERENCE.verifyMs));
}

/** Measures how long one request blocks this thread, on which the service runs. */
export class BlockMeter {
  readonly #sender = new Worker(SENDER, { eval: true });

  /**
   * The longest block in milliseconds of the reference machine; the minimum of several attempts, since garbage collections
   * only add to it.
   * @param goalMs ends the attempts once one is below.
   */
  async measure(makeRequest: () => MeasuredRequest | Promise<MeasuredRequest>, goalMs: number): Promise<BlockMeasurement> {
    let shortest: BlockMeasurement = { status: 0, milliseconds: Number.POSITIVE_INFINITY };
    for (let tries = 0; tries < MAX_TRIES && shortest.milliseconds >= goalMs; tries++) {
      const before = machineSlowness();
      const { status, milliseconds } = await this.#once(await makeRequest());
      // The slowness of a machine varies.
      const slowdown = (before + machineSlowness()) / 2;
      if (milliseconds / slowdown < shortest.milliseconds) shortest = { status, milliseconds: milliseconds / slowdown };
      // Pauses keep one disturbance from affecting all attempts.
      if (shortest.milliseconds >= goalMs) await pause(PAUSE_MS * tries);
    }
    return shortest;
  }

  #once(measured: MeasuredRequest): Promise<BlockMeasurement> {
    return new Promise((resolve) => {
      let longest = 0;
      let last = threadMilliseconds();
      let running = true;
      const tick = () => {
        const now = threadMilliseconds();
        longest = Math.max(longest, now - last);
        last = now;
        if (running) setImmediate(tick);
      };
      this.#sender.once('message', (status: number) => {
        running = false;
        resolve({ status, milliseconds: Math.max(longest, threadMilliseconds() - last) });
      });
      setImmediate(tick);
      this.#sender.postMessage(measured);
    });
  }

  close(): Promise<number> {
    return this.#sender.terminate();
  }
}
