import { Resolver } from 'node:dns/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { RemoteError } from '../../application/ports/remote.ts';
import { SingleFlight } from '../../application/tenant-cache/single-flight.ts';
import { LOCAL_NAME, LOOPBACK } from './address-guard.ts';
import { CallQueue, endOf } from './call-queue.ts';
import { nameFault } from './connection-fault.ts';
import { type Files, type Names, readNames, SYSTEM_FILES } from './resolver-files.ts';

export type ResolvedAddress = { readonly address: string; readonly family: number };

/** @returns every address of a host name. @param queueKey tenant for which it is resolved. */
export type Resolve = (host: string, queueKey: string) => Promise<readonly ResolvedAddress[]>;

/** Time limit of one name with all its queries. */
const LIMIT_MS = 3_000;
const QUERY_MS = 1_000;
const TRIES = 2;
/** RFC 8305 section 3: after one family has answered, the other gets little more time. */
const OTHER_FAMILY_MS = 300;
const KEPT_MS = 10_000;
const FAILURE_MS = 5_000;
/** Time for which the contents of the files are reused, and the name servers found in them. */
const FILES_MS = 5_000;
const MAX_KEPT_BYTES = 1024 * 1024;
const MAX_ADDRESSES = 32;
const LOOKUPS = { slots: 256, slotsPerKey: 4, waitingPerKey: 256, waiting: 4_096 };

type Outcome = { readonly until: number } & (
  | { readonly addresses: readonly ResolvedAddress[]; readonly failure?: undefined }
  | { readonly addresses?: undefined; readonly failure: RemoteError }
);

/**
 * Queries the name servers of the system without a thread per query, so that names without an answer delay no other ones. The hosts file
 * comes first, then `localhost`, then DNS with the search domains of resolv.conf. Answers are cached for ten seconds, failures for five.
 */
export class NameResolver {
  readonly #files: Files;
  readonly #servers: readonly string[] | undefined;
  readonly #queue = new CallQueue(LOOKUPS);
  readonly #flights = new SingleFlight<readonly ResolvedAddress[]>();
  readonly #outcomes = new LRUCache<string, Outcome>({
    maxSize: MAX_KEPT_BYTES,
    sizeCalculation: ({ addresses = [] }, host) => 300 + host.length + 100 * addresses.length,
  });
  #names: { readonly until: number; readonly read: Promise<Names> } | undefined;

  /** @param settings for tests; by default those of the system. `servers` has the format of `setServers`. */
  constructor(settings: { readonly files?: Files; readonly servers?: readonly string[] } = {}) {
    this.#files = settings.files ?? SYSTEM_FILES;
    this.#servers = settings.servers;
  }

  /** @throws RemoteError `unreachable`, and `busy` if too many queries of the tenant wait. */
  readonly resolve: Resolve = (host, queueKey) => {
    const name = host.toLowerCase();
    const cached = this.#outcomes.get(name);
    if (cached !== undefined && performance.now() < cached.until) {
      return cached.failure === undefined ? Promise.resolve(cached.addresses) : Promise.reject(cached.failure);
    }
    // A tenant waits for its own queries only.
    return this.#flights.run(`${queueKey} ${name}`, () => this.#find(name, queueKey));
  };

  async #find(name: string, queueKey: string): Promise<readonly ResolvedAddress[]> {
    const call = new AbortController();
    const leave = await within(call, name, this.#queue.enter(queueKey, call));
    const resolver = new Resolver({ timeout: QUERY_MS, tries: TRIES });
    if (this.#servers !== undefined) resolver.setServers(this.#servers);
    try {
      // The time limit starts here: other queries of the tenant say nothing about the name.
      const addresses = await within(call, name, this.#ask(name, resolver));
      this.#outcomes.set(name, { addresses, until: performance.now() + KEPT_MS });
      return addresses;
    } catch (error) {
      const failure = error instanceof RemoteError ? error : lookupError(name, error);
      if (failure.fault !== 'busy') this.#outcomes.set(name, { failure, until: performance.now() + FAILURE_MS });
      throw failure;
    } finally {
      leave();
      // Cancels unfinished queries.
      resolver.cancel();
    }
  }

  async #ask(name: string, resolver: Resolver): Promise<readonly ResolvedAddress[]> {
    const { hosts, search, dots } = await this.#present();
    const local = hosts.get(name.replace(/\.$/, '')) ?? (LOCAL_NAME.test(name) ? LOOPBACK : undefined);
    if (local !== undefined) return local.map(withFamily);
    let failure: unknown;
    for (const candidate of candidatesOf(name, search, dots)) {
      const addresses = await addressesOf(resolver, candidate).catch((error: unknown) => {
        failure ??= error;
        // A server that does not respond is not queried again for each search domain.
        if (!isAnswer(error)) throw error;
        return [];
      });
      if (addresses.length > 0) return addresses.slice(0, MAX_ADDRESSES);
    }
    throw lookupError(name, failure);
  }

  #present(): Promise<Names> {
    if (this.#names === undefined || performance.now() >= this.#names.until) {
      this.#names = { until: performance.now() + FILES_MS, read: readNames(this.#files) };
    }
    return this.#names.read;
  }
}

/** resolv.conf(5): with few dots the search domains come first; a name that ends in a dot is complete. */
function candidatesOf(name: string, search: readonly string[], dots: number): readonly string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const longer = search.map((domain) => `${name}.${domain}`).filter((candidate) => candidate.length <= 253);
  return name.split('.').length - 1 >= dots ? [name, ...longer] : [...longer, name];
}

/** Resolves both families, IPv4 first, because every network has it. */
async function addressesOf(resolver: Resolver, name: string): Promise<readonly ResolvedAddress[]> {
  const four = resolver.resolve4(name);
  const six = resolver.resolve6(name);
  const firstAnswer = await Promise.any([four, six]).catch(() => []);
  const late = firstAnswer.length > 0 ? [sleep(OTHER_FAMILY_MS, [] as string[], { ref: false })] : [];
  const both = await Promise.allSettled([four, six].map((answer) => Promise.race([answer, ...late])));
  const addresses = both.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (addresses.length > 0) return addresses.map(withFamily);
  const faults = both.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
  const fault = faults.find((resolverFault) => !isAnswer(resolverFault)) ?? faults[0];
  if (fault !== undefined) throw fault;
  return [];
}

const withFamily = (address: string): ResolvedAddress => ({ address, family: address.includes(':') ? 6 : 4 });

/** Returns true if a server responded, even if it knows no address. */
function isAnswer(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code !== 'ETIMEOUT' && code !== 'ECONNREFUSED' && code !== 'ECANCELLED';
}

/** Aborts `call` if the work takes longer than a lookup may. */
async function within<T>(call: AbortController, name: string, work: Promise<T>): Promise<T> {
  const limit = setTimeout(() => call.abort(lookupTimeoutError(name)), LIMIT_MS);
  try {
    return await Promise.race([work, endOf(call.signal)]);
  } finally {
    clearTimeout(limit);
  }
}

const lookupTimeoutError = (name: string) =>
  new RemoteError('unreachable', `${name} could not be looked up within ${LIMIT_MS} ms.`, {
    detail: 'DNS: the name server did not answer in time',
  });
const lookupError = (name: string, cause: unknown) =>
  new RemoteError('unreachable', `${name} could not be looked up.`, { cause, detail: nameFault(cause) });
