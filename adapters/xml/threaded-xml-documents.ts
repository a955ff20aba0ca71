import { Worker } from 'node:worker_threads';
import { type OpenedXmlList, SignedXmlDocuments } from '../../application/ports/signed-xml.ts';
import { type TrustListFault, TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { INLINE_LIMITS, XmlCryptoDocuments, type XmlLimits } from './signed-xml-documents.ts';

/** What goes to the thread. */
export type ReadingTask = {
  readonly text: Uint8Array;
  readonly signers: readonly string[];
  readonly now: Date;
  readonly limits: XmlLimits;
};

/** What comes back. */
export type ReadingAnswer =
  | { readonly opened: OpenedXmlList }
  | { readonly fault: TrustListFault; readonly detail: string | undefined };

/** Beside the sources and in what is built from them. */
const PROGRAM = new URL(
  import.meta.url.endsWith('.ts') ? './xml-worker.ts' : './xml-worker.js',
  import.meta.url,
);

/** The largest national lists have 8 MB, and a hundred thousand elements. */
const THREAD_LIMITS: XmlLimits = { bytes: 16 * 1024 * 1024, elements: 600_000, namespaces: 50_000 };
/** A list of 10 MB takes 300 MB and seven seconds. */
const MEMORY = { maxOldGenerationSizeMb: 768, maxYoungGenerationSizeMb: 64 };
const MAX_MS = 60_000;
/** Europe has half as many lists. */
const MAX_WAITING = 64;

type Options = { readonly milliseconds?: number; readonly megabytes?: number };

/**
 * Large lists are read in a thread of their own, which ends with its list, or when that takes more than it may: one at a time,
 * so that memory has a limit, while the thread that serves requests goes on.
 */
export class ThreadedXmlDocuments extends SignedXmlDocuments {
  readonly #inline = new XmlCryptoDocuments();
  readonly #milliseconds: number;
  readonly #memory: typeof MEMORY;
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor({ milliseconds = MAX_MS, megabytes = MEMORY.maxOldGenerationSizeMb }: Options = {}) {
    super();
    this.#milliseconds = milliseconds;
    this.#memory = { ...MEMORY, maxOldGenerationSizeMb: megabytes };
  }

  override trustedList(text: Buffer, signers: readonly string[], now: Date): Promise<OpenedXmlList> {
    if (text.length <= INLINE_LIMITS.bytes) return this.#inline.trustedList(text, signers, now);
    if (text.length > THREAD_LIMITS.bytes) {
      const limit = `lists in XML are read up to ${THREAD_LIMITS.bytes / 1024 / 1024} MiB`;
      return Promise.reject(new TrustListRefusal('malformed', limit));
    }
    if (this.#waiting >= MAX_WAITING) {
      return Promise.reject(new TrustListRefusal('unavailable', 'too many large lists wait to be read'));
    }
    this.#waiting++;
    const reading = this.#last
      .then(() => this.#read({ text, signers, now, limits: THREAD_LIMITS }))
      .finally(() => this.#waiting--);
    this.#last = reading.catch(() => {});
    return reading;
  }

  async #read(task: ReadingTask): Promise<OpenedXmlList> {
    const answer = await this.#answer({ ...task, text: new Uint8Array(task.text) });
    if ('fault' in answer) throw new TrustListRefusal(answer.fault, answer.detail);
    return answer.opened;
  }

  #answer(workerData: ReadingTask): Promise<ReadingAnswer> {
    return new Promise((resolve, reject) => {
      const worker = new Worker(PROGRAM, {
        workerData,
        transferList: [workerData.text.buffer as ArrayBuffer],
        name: 'trusted-list',
        resourceLimits: this.#memory,
        // What the process was started with may be meant for its main program alone.
        execArgv: [],
      });
      // A list that is read does not keep the process.
      worker.unref();
      const fail = (why: string) => reject(new TrustListRefusal('malformed', why));
      const timer = setTimeout(() => {
        fail(`it takes longer than ${this.#milliseconds / 1000} seconds to read`);
        void worker.terminate();
      }, this.#milliseconds);
      timer.unref();
      worker.once('message', resolve);
      worker.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') fail('it takes too much memory to read');
        else reject(error);
      });
      worker.once('exit', () => {
        clearTimeout(timer);
        fail('its reader ended without an answer');
      });
    });
  }
}
