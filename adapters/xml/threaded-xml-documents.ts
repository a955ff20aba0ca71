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
const THREAD_LIMITS: XmlLimits = {
  bytes: 16 * 1024 * 1024,
  elements: 600_000,
  namespaces: 20_000,
  inScope: 4_000_000,
  siblings: 2_000_000_000,
};
/** A list of 10 MB takes 300 MB and seven seconds. */
const MEMORY = { maxOldGenerationSizeMb: 768, maxYoungGenerationSizeMb: 64 };
const MAX_MS = 60_000;
/** Of all tenants together, and of one: Europe has some thirty lists, of which eight are asked for at the same time. */
const WAITING = { count: 64, bytes: 128 * 1024 * 1024 };
const WAITING_OF_ONE = { count: 16, bytes: 32 * 1024 * 1024 };

type Waiting = {
  readonly bytes: number;
  readonly read: () => Promise<void>;
  readonly refuse: (why: TrustListRefusal) => void;
};

type Options = { readonly milliseconds?: number; readonly megabytes?: number };

/**
 * Large lists are read in a thread of their own, which ends with its list, or when that takes more than it may: one at a time,
 * so that memory has a limit, and one of each tenant in turn, while the thread that serves requests goes on.
 */
export class ThreadedXmlDocuments extends SignedXmlDocuments {
  readonly #inline = new XmlCryptoDocuments();
  readonly #milliseconds: number;
  readonly #memory: typeof MEMORY;
  /** By tenant, in the order of their turns. */
  readonly #waiting = new Map<string, Waiting[]>();
  #isReading = false;

  constructor({ milliseconds = MAX_MS, megabytes = MEMORY.maxOldGenerationSizeMb }: Options = {}) {
    super();
    this.#milliseconds = milliseconds;
    this.#memory = { ...MEMORY, maxOldGenerationSizeMb: megabytes };
  }

  override trustedList(
    text: Buffer,
    signers: readonly string[],
    now: Date,
    owner: string,
  ): Promise<OpenedXmlList> {
    if (text.length <= INLINE_LIMITS.bytes) return this.#inline.trustedList(text, signers, now);
    if (text.length > THREAD_LIMITS.bytes) {
      const limit = `lists in XML are read up to ${THREAD_LIMITS.bytes / 1024 / 1024} MiB`;
      return Promise.reject(new TrustListRefusal('malformed', limit));
    }
    return new Promise((resolve, reject) => {
      const read = () => this.#read({ text, signers, now, limits: THREAD_LIMITS }).then(resolve, reject);
      this.#wait(owner, { bytes: text.length, read, refuse: reject });
      void this.#goOn();
    });
  }

  /** Who has nothing waiting always finds a place: the tenant that holds most gives way. */
  #wait(owner: string, task: Waiting): void {
    const own = this.#waiting.get(owner) ?? [];
    const all = () => [...this.#waiting.values()].flat();
    if (!hasRoom(own, task, WAITING_OF_ONE) || (own.length > 0 && !hasRoom(all(), task, WAITING))) {
      task.refuse(tooMany());
      return;
    }
    while (!hasRoom(all(), task, WAITING)) this.#giveWay();
    this.#waiting.set(owner, [...own, task]);
  }

  /** By what it holds of either limit, its last list. */
  #giveWay(): void {
    const shareOf = (tasks: readonly Waiting[]) =>
      Math.max(tasks.length / WAITING.count, bytesOf(tasks) / WAITING.bytes);
    const [largest] = [...this.#waiting].toSorted(([, one], [, other]) => shareOf(other) - shareOf(one));
    if (largest === undefined) return;
    const [owner, tasks] = largest;
    tasks.pop()?.refuse(tooMany());
    if (tasks.length === 0) this.#waiting.delete(owner);
  }

  /** Whose turn it was comes last. */
  async #goOn(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    for (let [turn] = this.#waiting; turn !== undefined; [turn] = this.#waiting) {
      const [owner, tasks] = turn;
      const task = tasks.shift();
      this.#waiting.delete(owner);
      if (tasks.length > 0) this.#waiting.set(owner, tasks);
      await task?.read();
    }
    this.#isReading = false;
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

const tooMany = () => new TrustListRefusal('unavailable', 'too many large lists wait to be read');

function bytesOf(tasks: readonly Waiting[]): number {
  return tasks.reduce((sum, { bytes }) => sum + bytes, 0);
}

function hasRoom(tasks: readonly Waiting[], { bytes }: Waiting, limit: typeof WAITING): boolean {
  return tasks.length < limit.count && bytesOf(tasks) + bytes <= limit.bytes;
}
