import type { OpenedList } from '../../application/ports/trust-list-reader.ts';
import type { TrustedEntity, TrustedService, TrustList } from '../../domain/trust-lists/lote.ts';
import type { TrustListFault } from '../../domain/trust-lists/trust-list-refusal.ts';

/** What goes to the thread: a list to open, or the wish for the next part of the one that it opened. */
export type ThreadRequest =
  | {
      readonly bytes: Uint8Array;
      /** DER in standard base64. */
      readonly signers: readonly string[] | 'shown';
      readonly now: Date;
    }
  | 'next';

/** What comes back: `opened`, all parts and `isComplete`, or `fault`. */
export type ThreadResponse =
  | { readonly opened: OpenedHead; readonly cpuMs: number }
  | { readonly part: EntityPart }
  | { readonly isComplete: true }
  | { readonly fault: TrustListFault; readonly detail: string | undefined; readonly cpuMs: number };

/** An opened list without its entities. */
export type OpenedHead = Omit<OpenedList, 'list'> & { readonly list: Omit<TrustList, 'entities'> };

/** Entities with some of their services; the first one may go on where the part before ended. */
export type EntityPart = { readonly continues: boolean; readonly entities: readonly TrustedEntity[] };

/** Objects and texts in one part. Receiving them takes the main thread less than a millisecond. */
const PART_WEIGHT = 400;

/** Splits a list so that no part takes long to receive: a thread that receives a whole list stands still meanwhile. */
export function* partsOf(entities: readonly TrustedEntity[]): Generator<EntityPart> {
  let part: TrustedEntity[] = [];
  let continues = false;
  let weight = 0;
  for (const entity of entities) {
    let services: TrustedService[] = [];
    weight += 1;
    for (const service of entity.services) {
      services.push(service);
      weight += weightOf(service);
      if (weight < PART_WEIGHT) continue;
      yield { continues, entities: [...part, { ...entity, services }] };
      [part, services, continues, weight] = [[], [], true, 0];
    }
    // What is left of an entity that a part ended in; nothing where it ended with the part.
    const isBegun = continues && part.length === 0;
    if (services.length > 0 || !isBegun) part.push({ ...entity, services });
    else continues = false;
    if (weight < PART_WEIGHT) continue;
    yield { continues, entities: part };
    [part, continues, weight] = [[], false, 0];
  }
  yield { continues, entities: part };
}

function weightOf({ certificates, history = [] }: TrustedService): number {
  return 2 + certificates.length * 3 + history.length * 2;
}

/** Puts the parts of a list together again. */
export function joinPart(entities: TrustedEntity[], part: EntityPart, texts = new SharedTexts()): void {
  const [first, ...others] = part.entities.map((entity) => ({
    ...entity,
    services: entity.services.map((service) => texts.inService(service)),
  }));
  const last = entities.at(-1);
  if (first === undefined) return;
  if (!part.continues || last === undefined) entities.push(first, ...others);
  else {
    (last.services as TrustedService[]).push(...first.services);
    entities.push(...others);
  }
}

/** Bounds what `SharedTexts` holds itself, beside the lists. */
const MAX_SHARED_BYTES = 16 * 1024 * 1024;

/**
 * One copy in memory of texts that are equal. Each message from a thread brings copies of its texts, and the same certificates stand in a
 * list several times, and in the copies of it that several tenants have.
 */
export class SharedTexts {
  readonly #texts = new Map<string, string>();
  #bytes = 0;

  inService(service: TrustedService): TrustedService {
    const { type, status, certificates, hashes, authorities } = service;
    return {
      ...service,
      type: type && this.#share(type),
      status: status && this.#share(status),
      certificates: certificates.map((text) => this.#share(text)),
      ...(hashes !== undefined && { hashes: hashes.map((text) => this.#share(text)) }),
      ...(authorities !== undefined && { authorities: authorities.map((text) => text && this.#share(text)) }),
    };
  }

  #share(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    this.#bytes += text.length;
    if (this.#bytes > MAX_SHARED_BYTES) {
      this.#texts.clear();
      this.#bytes = text.length;
    }
    this.#texts.set(text, text);
    return text;
  }
}
