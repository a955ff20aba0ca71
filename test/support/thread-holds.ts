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

/** With growing pauses between them, about ten seconds: a neighbour on the machine rarely disturbs all of them. */
const MAX_TRIES = 45;
const SIGNATURES = 10;
const PAUSE_MS = 10;

/** Sends from a thread of its own, so that what sending costs is not counted. */
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

/** What this thread has computed so far: neighbours on the machine do not count. */
function threadMilliseconds(): number {
  // Linux brings the count of a running thread up to now for the whole process alone; without it, it goes in ticks of 4 ms.
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

const KEYS = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** How much longer this machine takes than the one of reference: signatures that are made and verified, as in the bench. */
function machineSlowness(): number {
  const data = Buffer.alloc(200);
  const startedAt = threadMilliseconds();
  for (let i = 0; i < SIGNATURES; i++) verify('sha256', data, KEYS.publicKey, sign('sha256', data, KEYS.privateKey));
  return (threadMilliseconds() - startedAt) / (SIGNATURES * (REFERENCE.signMs + REFERENCE.verifyMs));
}

/** Measures how long one request keeps this thread, on which the service runs, from doing anything else. */
export class BlockMeter {
  readonly #sender = new Worker(SENDER, { eval: true });

  /**
   * The longest hold, milliseconds of computing on the machine of reference: of several tries the shortest, since collections
   * of garbage only ever add to it.
   * @param goalMs ends the tries once one is below.
   */
  async measure(makeRequest: () => MeasuredRequest | Promise<MeasuredRequest>, goalMs: number): Promise<BlockMeasurement> {
    let shortest: BlockMeasurement = { status: 0, milliseconds: Number.POSITIVE_INFINITY };
    for (let tries = 0; tries < MAX_TRIES && shortest.milliseconds >= goalMs; tries++) {
      const before = machineSlowness();
      const { status, milliseconds } = await this.#once(await makeRequest());
      // What slows a machine down comes and goes.
      const slowdown = (before + machineSlowness()) / 2;
      if (milliseconds / slowdown < shortest.milliseconds) shortest = { status, milliseconds: milliseconds / slowdown };
      // A neighbour that takes the caches for a tenth of a second would be in all of them otherwise.
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
