import { RemoteError } from '../../application/ports/remote.ts';

type Limits = { readonly all: number; readonly ofOne: number };
type Holder = { bytes: number; readonly call: AbortController };

/** What one call holds in memory. */
export type Bytes = {
  /** @throws RemoteError `busy` when its party holds too much already. */
  add(count: number): void;
  release(): void;
};

/**
 * Bytes of requests and answers that are held for calls under way. When it is too much for all, the largest call of the
 * party that holds most gives way.
 */
export class ByteShares {
  readonly #limits: Limits;
  readonly #parties = new Map<string, { bytes: number; readonly holders: Set<Holder> }>();
  #bytes = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  open(party: string, call: AbortController): Bytes {
    const holder: Holder = { bytes: 0, call };
    const own = this.#parties.get(party) ?? { bytes: 0, holders: new Set() };
    this.#parties.set(party, own);
    own.holders.add(holder);
    return {
      add: (count) => {
        if (!own.holders.has(holder)) return;
        if (own.bytes + count > this.#limits.ofOne) throw tooMuch();
        own.bytes += count;
        holder.bytes += count;
        this.#bytes += count;
        if (this.#bytes > this.#limits.all) this.#giveWay();
      },
      release: () => this.#release(party, holder),
    };
  }

  #release(party: string, holder: Holder): void {
    const own = this.#parties.get(party);
    if (own?.holders.delete(holder) !== true) return;
    own.bytes -= holder.bytes;
    this.#bytes -= holder.bytes;
    if (own.holders.size === 0) this.#parties.delete(party);
  }

  #giveWay(): void {
    const [largest] = [...this.#parties].toSorted(([, one], [, other]) => other.bytes - one.bytes);
    if (largest === undefined) return;
    const [party, { holders }] = largest;
    const [holder] = [...holders].toSorted((one, other) => other.bytes - one.bytes);
    if (holder === undefined) return;
    this.#release(party, holder);
    holder.call.abort(tooMuch());
  }
}

const tooMuch = () => new RemoteError('busy', 'Too much is being sent and received at once.');
