import { type OpenedList, type ReadingOptions, TrustListReader } from '../../application/ports/trust-list-reader.ts';
import { isXml } from '../../application/trust-lists/open-list.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { type Job, ListThread, type ThreadOptions, type ThreadResult } from './list-thread.ts';

/** Size up to which the main thread opens lists itself: some milliseconds, less than a transfer. */
const INLINE = { xml: 8 * 1024, compact: 32 * 1024 };
const THREAD = { milliseconds: 30_000, megabytes: 64, idleMs: 5_000 };
/** National lists take a second for all of them together. */
const BUDGET: BudgetLimits = { milliseconds: 10_000, perMs: 60_000 };

type Bound = { readonly count: number; readonly bytes: number };
/** Limits of waiting lists of all tenants together, and of one: Europe has some thirty lists, eight of which are fetched at a time. */
const WAITING: Bound = { count: 128, bytes: 128 * 1024 * 1024 };
const WAITING_PER_TENANT: Bound = { count: 64, bytes: 48 * 1024 * 1024 };

type WaitingJob = Job & { readonly resolve: (opened: OpenedList) => void; readonly reject: (error: unknown) => void };

type Options = {
  /** Opens small lists, in the calling thread. */
  readonly inline: TrustListReader;
  readonly program: URL;
  readonly milliseconds?: number;
  readonly megabytes?: number;
  readonly budget?: BudgetLimits;
  /** Replaces the thread and the clock in tests. */
  readonly thread?: { open(job: Job): Promise<ThreadResult> };
  readonly now?: () => number;
};

/**
 * Opens large lists in a thread: one at a time, so that memory is limited, and one of each tenant in turn. A tenant that has used up its
 * budget of processor time waits while the others continue. Waiting lists are limited in number and bytes.
 */
export class ThreadedTrustLists extends TrustListReader {
  readonly #inline: Options['inline'];
  readonly #thread: Pick<ListThread, 'open'>;
  readonly #budget: ProcessorBudget;
  readonly #now: () => number;
  /** Waiting lists by tenant, in the order of their turns. */
  readonly #waiting = new Map<string, WaitingJob[]>();
  #isReading = false;
  #timer: NodeJS.Timeout | undefined;

  constructor({ inline, program, thread, budget = BUDGET, now = () => performance.now(), ...limits }: Options) {
    super();
    const options: ThreadOptions = { ...THREAD, ...limits, program };
    this.#inline = inline;
    this.#thread = thread ?? new ListThread(options);
    this.#budget = new ProcessorBudget(budget);
    this.#now = now;
  }

  override open(bytes: Uint8Array, options: ReadingOptions): Promise<OpenedList> {
    if (bytes.length <= (isXml(bytes) ? INLINE.xml : INLINE.compact)) return this.#inline.open(bytes, options);
    const { tenantId, signers, now } = options;
    return new Promise((resolve, reject) => {
      this.#enqueue(tenantId, { bytes, signers, now, resolve, reject });
      this.advance();
    });
  }

  /** A tenant without waiting lists always gets a position: the tenant with the largest share loses one. */
  #enqueue(tenantId: string, job: WaitingJob): void {
    const tenantJobs = this.#waiting.get(tenantId) ?? [];
    const allJobs = () => [...this.#waiting.values()].flat();
    if (!fits(tenantJobs, job, WAITING_PER_TENANT) || (tenantJobs.length > 0 && !fits(allJobs(), job, WAITING))) {
      job.reject(tooManyError());
      return;
    }
    while (!fits(allJobs(), job, WAITING)) this.#rejectLargest();
    this.#waiting.set(tenantId, [...tenantJobs, job]);
  }

  /** Rejects the last list of the tenant with the largest share of either limit. */
  #rejectLargest(): void {
    const shareOf = (jobs: readonly WaitingJob[]) => Math.max(jobs.length / WAITING.count, bytesOf(jobs) / WAITING.bytes);
    const [largest] = [...this.#waiting].toSorted(([, a], [, b]) => shareOf(b) - shareOf(a));
    if (largest === undefined) return;
    const [tenantId, jobs] = largest;
    jobs.pop()?.reject(tooManyError());
    if (jobs.length === 0) this.#waiting.delete(tenantId);
  }

  /** Starts the next list unless one is being opened; called again when a budget allows it. */
  advance(): void {
    clearTimeout(this.#timer);
    if (this.#isReading || this.#waiting.size === 0) return;
    const now = this.#now();
    const waits = [...this.#waiting.keys()].map((tenantId) => this.#budget.waitMs(tenantId, now));
    const tenantId = [...this.#waiting.keys()][waits.indexOf(0)];
    if (tenantId === undefined) {
      this.#timer = setTimeout(() => this.advance(), Math.min(...waits));
      this.#timer.unref();
      return;
    }
    const job = this.#waiting.get(tenantId)?.shift();
    if (job !== undefined) void this.#read(tenantId, job);
  }

  async #read(tenantId: string, job: WaitingJob): Promise<void> {
    this.#isReading = true;
    const begun = this.#now();
    try {
      const { outcome, cpuMs } = await this.#thread.open(job);
      this.#budget.use(tenantId, cpuMs, this.#now());
      if ('opened' in outcome) job.resolve(outcome.opened);
      else job.reject(outcome.refusal);
    } catch (error) {
      // A list that makes the thread fail costs its tenant the elapsed time.
      this.#budget.use(tenantId, this.#now() - begun, this.#now());
      job.reject(error);
    } finally {
      this.#isReading = false;
      // The tenant moves to the end of the queue, with the lists that it added meanwhile.
      const remainingJobs = this.#waiting.get(tenantId) ?? [];
      this.#waiting.delete(tenantId);
      if (remainingJobs.length > 0) this.#waiting.set(tenantId, remainingJobs);
      this.advance();
    }
  }
}

const tooManyError = () => new TrustListRefusal('unavailable', 'too many large lists wait to be parsed');

function bytesOf(jobs: readonly WaitingJob[]): number {
  return jobs.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

function fits(jobs: readonly WaitingJob[], { bytes }: WaitingJob, bound: Bound): boolean {
  return jobs.length < bound.count && bytesOf(jobs) + bytes.length <= bound.bytes;
}

/** Processor time that one tenant may use: at most `milliseconds` at once, and as much again in each `perMs`. */
export type BudgetLimits = { readonly milliseconds: number; readonly perMs: number };

/** Limit of tenants with a record; a tenant without recent use has its whole budget anyway. */
const MAX_TENANTS = 10_000;

/** Token bucket of processor time for each tenant. A tenant may overdraw it with one list, and waits until that is made up. */
export class ProcessorBudget {
  readonly #limits: BudgetLimits;
  readonly #used = new Map<string, { readonly milliseconds: number; readonly at: number }>();

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  /** @param now milliseconds of a monotonic clock. @returns 0 if the tenant may continue at once. */
  waitMs(tenantId: string, now: number): number {
    const { milliseconds, perMs } = this.#limits;
    const over = this.#usedAt(tenantId, now) - milliseconds;
    return over < 0 ? 0 : Math.ceil(((over + 1) * perMs) / milliseconds);
  }

  use(tenantId: string, milliseconds: number, now: number): void {
    const used = this.#usedAt(tenantId, now) + milliseconds;
    this.#used.delete(tenantId);
    this.#used.set(tenantId, { milliseconds: used, at: now });
    if (this.#used.size <= MAX_TENANTS) return;
    // Removes the tenant whose last use is the oldest.
    for (const oldest of this.#used.keys()) {
      this.#used.delete(oldest);
      break;
    }
  }

  #usedAt(tenantId: string, now: number): number {
    const { milliseconds, perMs } = this.#limits;
    const used = this.#used.get(tenantId);
    if (used === undefined) return 0;
    return Math.max(0, used.milliseconds - ((now - used.at) * milliseconds) / perMs);
  }
}
