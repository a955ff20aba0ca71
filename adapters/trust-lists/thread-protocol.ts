import type { OpenedList } from '../../application/ports/trust-list-reader.ts';
import type { TrustedEntity, TrustedService, TrustList } from '../../domain/trust-lists/lote.ts';
import type { TrustListFault } from '../../domain/trust-lists/trust-list-refusal.ts';

/** Message to the thread: a list to open, or the request for the next part of the list that it opened. */
export type ThreadRequest =
  | {
      readonly bytes: Uint8Array;
      /** DER in standard base64. */
      readonly signers: readonly string[] | 'shown';
      readonly now: Date;
    }
  | 'next';

/** Message from the thread: `opened`, all parts and `isComplete`, or `fault`. */
export type ThreadResponse =
  | { readonly opened: OpenedHead; readonly cpuMs: number }
  | { readonly part: EntityPart }
  | { readonly isComplete: true }
  | { readonly fault: TrustListFault; readonly detail: string | undefined; readonly cpuMs: number };

/** An opened list without its entities. */
export type OpenedHead = Omit<OpenedList, 'list'> & { readonly list: Omit<TrustList, 'entities'> };

/** Entities with some of their services; the first one may continue the last entity of the previous part. */
export type EntityPart = { readonly continues: boolean; readonly entities: readonly TrustedEntity[] };

/** Objects and texts of one part. Receiving them takes the main thread less than a millisecond. */
const PART_WEIGHT = 400;

/** Splits a list so that no part takes long to receive: receiving a whole list would block the thread. */
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
    // Remainder of an entity that a part split; nothing if the entity ended with the part.
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

export function joinPart(entities: TrustedEntity[], part: EntityPart, texts = new SharedTexts()): void {
  const [firstEntity, ...otherEntities] = part.entities.map((entity) => ({
    ...entity,
    services: entity.services.map((service) => texts.inService(service)),
  }));
  const lastEntity = entities.at(-1);
  if (firstEntity === undefined) return;
  if (!part.continues || lastEntity === undefined) entities.push(firstEntity, ...otherEntities);
  else {
    (lastEntity.services as TrustedService[]).push(...firstEntity.services);
    entities.push(...otherEntities);
  }
}

/** Limit of the texts that `SharedTexts` holds itself, besides the lists. */
const MAX_SHARED_BYTES = 16 * 1024 * 1024;

/**
 * Keeps one copy of equal texts. Each message from a thread brings copies of its texts, and the same certificates occur in a list several
 * times, and in the copies of several tenants.
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
    const shared = this.#texts.get(text);
    if (shared !== undefined) return shared;
    this.#bytes += text.length;
    if (this.#bytes > MAX_SHARED_BYTES) {
      this.#texts.clear();
      this.#bytes = text.length;
    }
    this.#texts.set(text, text);
    return text;
  }
}
