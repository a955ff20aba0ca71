import { Remote, RemoteError, type RemoteResponse } from '../../application/ports/remote.ts';
import { MemoryBudget } from '../../application/queues/memory-budget.ts';
import { AddressGuard } from './address-guard.ts';
import { readAnswer } from './answer.ts';
import { CallQueue, endOf } from './call-queue.ts';
import { connectionFault } from './connection-fault.ts';
import { isPermittedLiteral } from './guarded-connector.ts';
import { CALLS_OF_LANE, Lanes } from './lanes.ts';
import { NameResolver, type Resolve } from './name-resolver.ts';
import { MAX_REDIRECTS, nextAddress, Redirection } from './redirection.ts';
import { request } from './undici-parts.ts';

const MEBIBYTE = 1024 * 1024;
/** Calls to all origins: parties are tenants. */
const OF_ALL = { slots: 2048, slotsOfParty: 256, waitingOfParty: 256, waiting: 2048 };
/** Calls of one tenant: parties are origins. */
const OF_TENANT = { slots: 256, slotsOfParty: CALLS_OF_LANE, waitingOfParty: 96, waiting: 768 };
/** Calls to one origin: parties are tenants. */
const OF_ORIGIN = { slots: 256, slotsOfParty: CALLS_OF_LANE, waitingOfParty: CALLS_OF_LANE, waiting: 2048 };
/** What is sent and received at once. */
const BYTES = { all: 256 * MEBIBYTE, ofParty: 32 * MEBIBYTE };

type Options = Parameters<Remote['request']>[1];
type Call = {
  readonly url: URL;
  readonly options: Options;
  /** The tenant, or nothing for calls of the service itself. */
  readonly party: string;
  /** Ends the call, with the reason. */
  readonly end: AbortController;
};

/**
 * The one outgoing client: guarded addresses, few redirects, bounded in time, size, connections and queue. Each tenant
 * has its share of calls, connections and bytes, in all and at each origin, and nobody's slow servers make others wait.
 */
export class GuardedHttpClient extends Remote {
  readonly #guard: AddressGuard;
  readonly #lanes: Lanes;
  readonly #all = new CallQueue(OF_ALL);
  readonly #tenants = new Map<string, CallQueue>();
  readonly #origins = new Map<string, CallQueue>();
  readonly #memory = new MemoryBudget(BYTES, () => new RemoteError('busy', 'Too much is being sent and received at once.'));
  #isClosed = false;

  /**
   * @param settings `allow`: hosts and networks beyond the public internet, see `AddressGuard`.
   * @throws Error when an entry of `allow` cannot be read.
   */
  constructor(settings: { readonly allow: readonly string[]; readonly resolve?: Resolve }) {
    super();
    this.#guard = new AddressGuard(settings.allow);
    this.#lanes = new Lanes(this.#guard, settings.resolve ?? new NameResolver().resolve);
  }

  override refuses(url: string, tenantId: string | undefined): boolean {
    return this.#guard.of(tenantId).refuses(url);
  }

  /** The time limit covers everything from waiting for a turn and name resolution to the last byte. */
  override async request(url: string, options: Options): Promise<RemoteResponse> {
    const target = this.#admit(url, options);
    if (this.#isClosed) throw new RemoteError('busy', 'The service is stopping.');
    const end = new AbortController();
    const timer = setTimeout(() => {
      end.abort(new RemoteError('timeout', `${target.origin} did not answer within ${options.timeoutMs} ms.`));
    }, options.timeoutMs);
    try {
      return await this.#follow({ url: target, options, party: options.tenantId ?? '', end });
    } catch (fault) {
      // Whatever is left of it is closed: an answer that comes later, the rest of one that is too long.
      end.abort(fault);
      throw fault;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends after the calls that are under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#lanes.close();
  }

  async #follow(first: Call): Promise<RemoteResponse> {
    const seen = new Set<string>();
    for (let call = first; ; ) {
      const { url, end } = call;
      seen.add(url.href);
      try {
        return await this.#inTurn(call);
      } catch (cause) {
        const fault = faultOf(end.signal.aborted ? end.signal.reason : cause, url.origin);
        const next = seen.size > MAX_REDIRECTS ? undefined : this.#sentOn(call, fault);
        if (next === undefined || seen.has(next.url.href)) throw fault;
        call = next;
      }
    }
  }

  /** @returns the call to make next; undefined where a fault is one. */
  #sentOn(call: Call, fault: RemoteError): Call | undefined {
    const { options } = call;
    if (!(fault instanceof Redirection) || options.followsRedirects !== true || options.method !== 'GET') return undefined;
    const next = nextAddress(call.url, fault);
    if (next === undefined) return undefined;
    // What is sent to one host is not for the next one.
    const { headers: { accept = '*/*' } = {}, body: _, ...rest } = options;
    return { ...call, url: this.#admit(next.href, options), options: { ...rest, headers: { accept } } };
  }

  /** What can be refused without asking a name server. */
  #admit(text: string, { tenantId, isSigned }: Options): URL {
    const url = URL.parse(text);
    if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
      throw new RemoteError('refused_address', 'Only https addresses can be called.');
    }
    if (url.username !== '' || url.password !== '') {
      throw new RemoteError('refused_address', `An address at ${url.host} carries credentials.`);
    }
    if (isPermittedLiteral(this.#guard.of(tenantId, isSigned), url) === false) {
      throw new RemoteError('refused_address', `${url.origin} may not be called.`);
    }
    return url;
  }

  /** First a place among the calls of the tenant, so that nobody waits elsewhere with more than its share. */
  async #inTurn(call: Call): Promise<RemoteResponse> {
    const { party, end, url } = call;
    const places: (() => void)[] = [];
    try {
      places.push(await enter(this.#tenants, party, OF_TENANT, url.origin, end));
      places.push(await enter(this.#origins, url.origin, OF_ORIGIN, party, end));
      places.push(await this.#all.enter(party, end));
      // The library does not end a call that still waits for its connection.
      return await Promise.race([this.#exchange(call), endOf(end.signal)]);
    } finally {
      for (const leave of places.toReversed()) leave();
    }
  }

  async #exchange({ url, options, party, end }: Call): Promise<RemoteResponse> {
    const lane = this.#lanes.enter(party, url.origin, options.isSigned);
    const bytes = this.#memory.open(party, (reason) => end.abort(reason));
    const underWay = { all: this.#all.heldCount, own: this.#tenants.get(party)?.heldCount ?? 0 };
    try {
      bytes.add(options.body?.length ?? 0);
      const answer = await request(lane.pool, {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: options.method,
        headers: { ...options.headers, 'accept-encoding': 'identity' },
        body: options.body ?? null,
        signal: end.signal,
        ...(this.#lanes.isCrowded(party, underWay) && { reset: true }),
      });
      const { maxBytes, readsErrors = false } = options;
      return await readAnswer(answer, { origin: url.origin, maxBytes, readsErrors, bytes });
    } finally {
      bytes.release();
      this.#lanes.leave(lane);
    }
  }
}

/** @returns the function that gives the slot back and removes an idle queue. */
async function enter(
  queues: Map<string, CallQueue>,
  name: string,
  limits: ConstructorParameters<typeof CallQueue>[0],
  party: string,
  end: AbortController,
): Promise<() => void> {
  const queue = queues.get(name) ?? new CallQueue(limits);
  queues.set(name, queue);
  const forget = () => {
    if (queue.isIdle && queues.get(name) === queue) queues.delete(name);
  };
  try {
    const leave = await queue.enter(party, end);
    return () => {
      leave();
      forget();
    };
  } catch (error) {
    forget();
    throw error;
  }
}

function faultOf(cause: unknown, origin: string): RemoteError {
  if (cause instanceof RemoteError) return cause;
  const detail = connectionFault(cause);
  const why = detail === undefined ? '' : `: ${detail}`;
  return new RemoteError('unreachable', `${origin} could not be reached${why}.`, { cause, detail });
}
